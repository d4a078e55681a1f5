// Watch: notes every error and message of the console, from before the page's own script on.
// SPDX-License-Identifier: Apache-2.0
window.complaints = [];
for (const level of ['error', 'warn', 'log']) {
  console[level] = (...words) => window.complaints.push(`${level}: ${words.join(' ')}`);
}
addEventListener('error', (event) => window.complaints.push(event.message));
addEventListener('unhandledrejection', (event) => window.complaints.push(String(event.reason)));
addEventListener('securitypolicyviolation', (event) => {
  window.complaints.push(`refused by policy: ${event.violatedDirective} ${event.blockedURI}`);
});
// Events made by scripts have pointers that no browser can capture.
Element.prototype.setPointerCapture = () => {};
