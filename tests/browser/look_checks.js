// Look checks: narrow and dark windows, and what every window needs.
// SPDX-License-Identifier: Apache-2.0
const brightness = (words) => words.match(/[0-9.]+/g).slice(0, 3).reduce((a, b) => a + +b, 0) / 3;

tell({
  'nothing sticks out of the window': () => {
    const root = document.documentElement;
    expect(root.scrollWidth <= innerWidth, `${root.scrollWidth} of ${innerWidth} pixels`);
  },
  'text is told apart from paper, in the scheme that was asked for': () => {
    const style = getComputedStyle(document.body);
    const [paper, ink] = [brightness(style.backgroundColor), brightness(style.color)];
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    expect(dark ? paper < 60 && ink > 190 : paper > 230 && ink < 80, `${paper} and ${ink}`);
  },
  'charts are drawn on that paper': () => {
    const [canvas] = canvases();
    const { data } = canvas.getContext('2d').getImageData(canvas.width / 2, 2, 1, 1);
    expect(data[3] > 0, 'the chart is empty');
  },
  'every button is large enough for a finger': () => {
    for (const button of document.querySelectorAll('button')) {
      expect(button.offsetHeight >= 32, `${button.textContent}: ${button.offsetHeight} pixels`);
    }
  },
  'everything that can be used has a name': () => {
    for (const canvas of document.querySelectorAll('canvas')) {
      expect(canvas.getAttribute('aria-label') && canvas.tabIndex === 0, 'a chart has none');
    }
  },
  'on paper it is light, and afterwards as before': async () => {
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    const [canvas] = canvases();
    const before = picture(canvas);
    dispatchEvent(new Event('beforeprint'));
    expect((picture(canvas) !== before) === dark, 'the charts keep the scheme of the window');
    const paper = brightness(getComputedStyle(document.body).backgroundColor);
    expect(paper > 230, `paper of brightness ${paper}`);
    dispatchEvent(new Event('afterprint'));
    await frames();
    expect(picture(canvas) === before, 'the charts stay as printed');
  },
  'the page says what it shows, and who made it': () => {
    const words = document.querySelector('.origin').textContent;
    const wanted = /^Scenario [0-9a-f]{12} .*, engine [a-z]+, seed \d+, interlock [0-9.]+\.$/;
    expect(wanted.test(words), words);
  },
});
