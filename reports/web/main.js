// Main: finds the data of each scenario in the page and builds its charts.
// SPDX-License-Identifier: Apache-2.0

// Reads the scenarios, and finds the place of the charts of each.
async function readScenarios() {
  const blocks = document.querySelectorAll('script[type="application/scenario+json"]');
  const reading = [...blocks].map(async (block) => {
    const scenario = await unpackScenario(JSON.parse(block.textContent));
    scenario.view = makeView(scenario.range, initialView(scenario));
    return { scenario, place: block.parentElement };
  });
  return Promise.all(reading);
}

function linkScenarios(all, same) {
  linkViews(all, () => same.checked);
  const first = all[0];
  const align = () => {
    const widest = Math.max(...all.map((s) => initialView(s)[1] - initialView(s)[0]));
    if (same.checked) first.view.show(first.window[0], first.window[0] + widest);
  };
  same.addEventListener('change', align);
  return align;
}

async function start() {
  if (typeof DecompressionStream === 'undefined') {
    document.querySelector('footer').prepend(
      'The charts need a browser of 2023 or later (DecompressionStream). ');
    return;
  }
  const scenarios = await readScenarios();
  const same = document.querySelector('#same-scale');
  const align = same && linkScenarios(scenarios.map(({ scenario }) => scenario), same);
  for (const { scenario, place } of scenarios) buildScenario(place, scenario);
  if (align) align();
  document.documentElement.dataset.ready = 'true';
}

start();
startChoices();
startTables();
startSections();
