// The script of a report: changes language and theme, and shows the values of a chart under the pointer and by the arrow
// keys. The values are those of the table below the chart, in the digits of its language.

import {
  applyTheme,
  chosenLanguage,
  chosenTheme,
  keepLanguage,
  keepTheme,
} from '../../../page/preferences.js'

/** @param {string} language */
const showLanguage = language => {
  for (const version of document.querySelectorAll('.version')) {
    const { lang, dataset } = /** @type {HTMLElement} */ (version)
    version.toggleAttribute('hidden', lang !== language)
    if (lang === language) document.title = dataset.title ?? document.title
  }
  document.documentElement.lang = language
}

/** @param {import('../../../page/preferences.js').Theme} theme */
const showTheme = theme => {
  applyTheme(theme)
  for (const select of document.querySelectorAll('select')) select.value = theme
}

/** Makes a chart show its values. @param {Element} figure */
const enliven = figure => {
  const plot = /** @type {HTMLElement} */ (figure.querySelector('.plot'))
  const rows = figure.querySelectorAll('tbody tr')
  const heads = figure.querySelectorAll('thead th')
  const samples = figure.querySelectorAll('.legend .sample')
  const places = (plot.dataset.at ?? '').split(' ').map(Number)
  const cursor = document.createElement('div')
  const tip = document.createElement('div')
  cursor.className = 'cursor'
  tip.className = 'tip'
  cursor.hidden = tip.hidden = true
  plot.append(cursor, tip)
  let at = -1

  const hide = () => {
    cursor.hidden = tip.hidden = true
  }
  /** @param {number} index */
  const show = index => {
    at = Math.max(0, Math.min(places.length - 1, index))
    const place = places[at] ?? 0
    const [name, ...cells] = [...(rows[at]?.children ?? [])].map(cell => cell.textContent ?? '')
    const lines = cells.map((cell, i) => {
      const line = document.createElement('span')
      const sample = samples[i]?.cloneNode(true)
      if (sample) line.append(sample)
      line.append(
        `${heads[i + 1]?.textContent ?? ''} `,
        Object.assign(document.createElement('b'), { textContent: cell }),
      )
      return line
    })
    tip.replaceChildren(Object.assign(document.createElement('b'), { textContent: name }), ...lines)
    cursor.style.left = `${place}%`
    tip.style.left = place > 50 ? 'auto' : `calc(${place}% + 10px)`
    tip.style.right = place > 50 ? `calc(${100 - place}% + 10px)` : 'auto'
    cursor.hidden = tip.hidden = false
    plot.setAttribute('aria-valuenow', String(at))
    plot.setAttribute('aria-valuetext', [name, ...lines.map(line => line.textContent)].join(', '))
  }

  plot.setAttribute('role', 'slider')
  plot.tabIndex = 0
  plot.setAttribute('aria-valuemin', '0')
  plot.setAttribute('aria-valuemax', String(Math.max(0, places.length - 1)))
  plot.setAttribute('aria-valuenow', '0')
  /** @param {PointerEvent} event */
  const follow = event => {
    const { left, width } = plot.getBoundingClientRect()
    const pointed = ((event.clientX - left) / width) * 100
    let nearest = 0
    places.forEach((place, i) => {
      if (Math.abs(place - pointed) < Math.abs((places[nearest] ?? 0) - pointed)) nearest = i
    })
    show(nearest)
  }
  plot.addEventListener('pointermove', follow)
  plot.addEventListener('pointerdown', follow)
  plot.addEventListener('pointerleave', hide)
  plot.addEventListener('blur', hide)
  plot.addEventListener('focus', () => {
    if (plot.matches(':focus-visible')) show(Math.max(0, at))
  })
  plot.addEventListener('keydown', event => {
    const far = Math.max(1, Math.round(places.length / 10))
    /** @type {Record<string, number>} */
    const targets = {
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      PageDown: at - far,
      PageUp: at + far,
      Home: 0,
      End: places.length - 1,
    }
    const target = targets[event.key]
    if (event.key === 'Escape') hide()
    if (target === undefined) return
    event.preventDefault()
    show(target)
  })
}

showLanguage(chosenLanguage())
showTheme(chosenTheme())
for (const figure of document.querySelectorAll('figure.chart')) enliven(figure)
for (const hint of document.querySelectorAll('.controls, .hint')) hint.removeAttribute('hidden')
for (const button of document.querySelectorAll('button.language'))
  button.addEventListener('click', () => {
    const language = /** @type {HTMLElement} */ (button).lang === 'bn' ? 'bn' : 'en'
    keepLanguage(language)
    showLanguage(language)
    /** @type {HTMLElement | null} */
    const other = document.querySelector('.version:not([hidden]) button.language')
    other?.focus()
  })
for (const select of document.querySelectorAll('select.theme'))
  select.addEventListener('change', () => {
    const theme = /** @type {import('../../../page/preferences.js').Theme} */ (
      /** @type {HTMLSelectElement} */ (select).value
    )
    keepTheme(theme)
    showTheme(theme)
  })
