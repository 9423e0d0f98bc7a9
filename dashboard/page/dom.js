// Makes and finds elements. Text is always set as text, never as markup.

/** @typedef {Record<string, string | number | boolean | null | undefined>} Attributes null, undefined and false leave one out */

/** @param {string} tag @param {Attributes} [attributes] @param {...(Node | string | null | undefined | false)} children */
export const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag)
  setAttributes(made, attributes)
  for (const child of children) if (child) made.append(child)
  return made
}

/** @param {string} tag @param {Attributes} [attributes] @param {...SVGElement} children @returns {SVGElement} */
export const drawn = (tag, attributes = {}, ...children) => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag)
  setAttributes(made, attributes)
  made.append(...children)
  return made
}

/** @param {Element} target @param {Record<string, string | number | boolean | null | undefined>} attributes */
const setAttributes = (target, attributes) => {
  for (const [name, value] of Object.entries(attributes))
    if (value !== null && value !== undefined && value !== false)
      target.setAttribute(name, value === true ? '' : String(value))
}

/**
 * @template {Element} [Found=HTMLElement]
 * @param {string} id
 * @returns {Found}
 */
export const byId = id => {
  const found = document.getElementById(id)
  if (!found) throw new Error(`the page has no #${id}`)
  return /** @type {Found} */ (/** @type {unknown} */ (found))
}

/** Sets the text only where it changes, so that what has not changed is not laid out again. @param {Element} target @param {string} text */
export const setText = (target, text) => {
  if (target.textContent !== text) target.textContent = text
}

/**
 * Replaces only the children that differ, which keeps the focus and the selection.
 * @param {Element} target
 * @param {readonly Node[]} children
 */
export const setChildren = (target, children) => {
  children.forEach((child, i) => {
    const shown = target.childNodes[i]
    if (!shown) target.append(child)
    else if (!shown.isEqualNode(child)) shown.replaceWith(child)
  })
  while (target.childNodes.length > children.length) target.lastChild?.remove()
}
