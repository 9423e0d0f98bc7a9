// The theme: the system's until the operator chooses, then kept in this browser; and the theme's colours.

/** @typedef {'system' | 'light' | 'dark'} Theme */

/** Storage may be forbidden; then a choice lasts as long as the page. @param {string} name */
const stored = name => {
  try {
    return localStorage.getItem(`abohawa.${name}`)
  } catch {
    return null
  }
}

/** @param {string} name @param {string} value */
const store = (name, value) => {
  try {
    localStorage.setItem(`abohawa.${name}`, value)
  } catch {}
}

/** @returns {Theme} */
export const chosenTheme = () => {
  const kept = stored('theme')
  return kept === 'light' || kept === 'dark' ? kept : 'system'
}

/** @param {Theme} theme */
export const keepTheme = theme => store('theme', theme)

/** @param {Theme} theme */
export const applyTheme = theme => {
  document.documentElement.dataset.theme = theme
}

/** Draws again when the system or paper brings other colours. @param {() => void} draw */
export const drawInOtherColours = draw => {
  for (const media of ['(prefers-color-scheme: dark)', '(forced-colors: active)', 'print'])
    matchMedia(media).addEventListener('change', draw)
}

/** The computed colour of the stylesheet in the current theme. @param {string} name */
export const colourOf = name => {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  // Where the system forces its own colours too: lines and areas are to differ.
  probe.style.forcedColorAdjust = 'none'
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
