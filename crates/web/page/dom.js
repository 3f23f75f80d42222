// Builds elements. Text that comes from elsewhere goes into text nodes only.

/** Returns the element with this id. */
export const byId = (id) => document.getElementById(id);

/** Makes an element: attributes by name, `on…` as listeners, children as text or elements. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  return fill(element, attributes, children);
}

/** Makes an element of an SVG picture. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return fill(element, attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Sets a text only where it changed, so that nothing is laid out anew for nothing. */
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

/** Remembers a choice of the user in this browser, where that is allowed. */
export const remembered = {
  get(name, otherwise) {
    try { return localStorage.getItem(`millstream.${name}`) ?? otherwise; } catch { return otherwise; }
  },
  set(name, value) {
    try { localStorage.setItem(`millstream.${name}`, value); } catch { /* A private window remembers nothing. */ }
  },
};
