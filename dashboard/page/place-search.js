// The search of places: a combobox whose list follows what is typed, in either language. A place that is chosen leads to its
// cell.

import { byId, element, setText } from './dom.js'
import { placeLabel } from './labels.js'
import { read } from './listener.js'

/** @typedef {import('./contract.ts').Found} Found */
/** @typedef {import('./labels.js').Words} Words */

const pauseMs = 120
const limit = 8

/** @param {{ words: () => Words, onChoose: (cell: string) => void }} parts */
export const createPlaceSearch = ({ words, onChoose }) => {
  const input = /** @type {HTMLInputElement} */ (byId('search'))
  const list = byId('found')
  const note = byId('found-note')
  /** @type {Found[]} */
  let found = []
  let active = -1
  let asked = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let waiting

  const close = () => {
    asked += 1
    clearTimeout(waiting)
    list.hidden = true
    input.setAttribute('aria-expanded', 'false')
    input.removeAttribute('aria-activedescendant')
    active = -1
    setText(note, '')
  }

  /** @param {number} index */
  const activate = index => {
    active = index
    Array.from(list.children).forEach((option, i) => {
      option.setAttribute('aria-selected', String(i === index))
      if (i === index) option.scrollIntoView({ block: 'nearest' })
    })
    if (index >= 0) input.setAttribute('aria-activedescendant', `found-${index}`)
    else input.removeAttribute('aria-activedescendant')
  }

  /** @param {Found | undefined} place */
  const choose = place => {
    if (!place) return
    close()
    onChoose(place.cell)
  }

  const show = () => {
    const { text, figures } = words()
    list.replaceChildren(
      ...found.map((place, i) => {
        const option = element(
          'li',
          { role: 'option', id: `found-${i}`, 'aria-selected': 'false', 'data-cell': place.cell },
          placeLabel(place, words()),
          element('small', { lang: 'bn' }, place.name_bn),
        )
        // Before the field loses the focus, which closes the list.
        option.addEventListener('pointerdown', event => {
          event.preventDefault()
          choose(place)
        })
        return option
      }),
    )
    const isOpen = found.length > 0
    list.hidden = !isOpen
    input.setAttribute('aria-expanded', String(isOpen))
    setText(note, isOpen ? text('searchFound', figures.count(found.length)) : text('searchNone'))
    note.classList.toggle('unseen', isOpen)
    activate(isOpen ? 0 : -1)
  }

  const search = async () => {
    const words_ = input.value.trim()
    if (words_ === '') {
      close()
      return
    }
    asked += 1
    const mine = asked
    try {
      const answer = await read(`/search?q=${encodeURIComponent(words_)}&limit=${limit}`)
      if (mine !== asked) return
      found = answer.places
      show()
    } catch (error) {
      if (mine !== asked) return
      close()
      note.classList.remove('unseen')
      setText(note, words().text('searchFailed', error instanceof Error ? error.message : String(error)))
    }
  }

  input.addEventListener('input', () => {
    clearTimeout(waiting)
    waiting = setTimeout(search, pauseMs)
  })
  input.addEventListener('keydown', event => {
    if (event.key === 'Escape') close()
    else if (list.hidden) {
      if (event.key === 'ArrowDown' || event.key === 'Enter') void search()
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      const step = event.key === 'ArrowDown' ? 1 : -1
      activate((active + step + found.length) % found.length)
    } else if (event.key === 'Enter') {
      event.preventDefault()
      choose(found[active])
    }
  })
  input.addEventListener('blur', close)
}
