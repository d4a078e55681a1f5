// Sections: scenarios of a page that are folded open as links lead to them, or all at once.
// SPDX-License-Identifier: Apache-2.0

function unfoldTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  const fold = target && target.querySelector(':scope > details');
  if (!fold || fold.open) return;
  fold.open = true;
  target.scrollIntoView();
}

function startSections() {
  const folds = [...document.querySelectorAll('section > details')];
  const place = document.querySelector('#timelines');
  if (place && folds.length > 1) {
    const all = (open) => () => folds.forEach((fold) => { fold.open = open; });
    place.append(button('Open all', 'Open every scenario', all(true)),
      button('Fold all', 'Fold every scenario', all(false)));
  }
  addEventListener('hashchange', unfoldTarget);
  // A second click on the same link changes no address.
  addEventListener('click', (event) => {
    if (event.target.closest && event.target.closest('a[href^="#"]')) setTimeout(unfoldTarget);
  });
  unfoldTarget();
}
