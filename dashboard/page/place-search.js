// The search of places: a combobox in either language that leads to the cell of a place.

import { read } from './listener.js'
import { Component } from './preact.js'
import { figures, html, messageOf, placeLabel } from './view.js'

/** @typedef {import('./contract.ts').Found} Found */

const pauseMs = 120
const limit = 8
const closed = { found: /** @type {Found[]} */ ([]), active: -1, note: '' }

/** @extends {Component<{ onChoose: (cell: string) => void }, typeof closed>} */
export class PlaceSearch extends Component {
  state = closed
  typed = ''
  /** The text to which the list belongs. */
  listed = ''
  asked = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  waiting

  close = () => {
    this.asked += 1
    clearTimeout(this.waiting)
    this.setState(closed)
  }

  /** @param {Found | undefined} place */
  choose(place) {
    if (!place) return
    this.close()
    this.props.onChoose(place.cell)
  }

  search = async () => {
    if (this.typed === '') {
      this.close()
      return
    }
    this.asked += 1
    const mine = this.asked
    const text = this.typed
    try {
      const { places } = await read(`/search?q=${encodeURIComponent(text)}&limit=${limit}`)
      if (mine !== this.asked) return
      this.listed = text
      const isOpen = places.length > 0
      this.setState({
        found: places,
        active: isOpen ? 0 : -1,
        note: isOpen
          ? `Places found: ${figures.count(places.length)}. Arrow keys choose, Enter opens.`
          : 'No places found.',
      })
    } catch (error) {
      if (mine === this.asked) this.setState({ ...closed, note: `The search failed: ${messageOf(error)}` })
    }
  }

  /** @param {{ currentTarget: HTMLInputElement }} event */
  onInput = ({ currentTarget }) => {
    this.typed = currentTarget.value.trim()
    // An answer to the text before may still come.
    this.asked += 1
    clearTimeout(this.waiting)
    this.waiting = setTimeout(this.search, pauseMs)
  }

  /** @param {KeyboardEvent} event */
  onKey = event => {
    const { found, active } = this.state
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Escape') this.close()
    else if (found.length === 0) {
      if (event.key === 'ArrowDown' || event.key === 'Enter') void this.search()
    } else if (step) {
      event.preventDefault()
      this.setState({ active: (active + step + found.length) % found.length })
    } else if (event.key === 'Enter') {
      event.preventDefault()
      if (this.listed === this.typed) this.choose(found[active])
      else void this.search()
    }
  }

  componentDidUpdate() {
    document.getElementById(`found-${this.state.active}`)?.scrollIntoView({ block: 'nearest' })
  }

  render() {
    const { found, active, note } = this.state
    const isOpen = found.length > 0
    return html`<div class="search">
      <input id="search" type="search" role="combobox" aria-autocomplete="list" aria-expanded=${String(isOpen)} aria-controls="found"
        aria-activedescendant=${isOpen ? `found-${active}` : undefined} autocomplete="off" spellcheck=${false} maxlength="100"
        aria-label="Find a place" placeholder="Place name, English or Bengali"
        onInput=${this.onInput} onKeyDown=${this.onKey} onBlur=${this.close} />
      <ul id="found" role="listbox" aria-label="Find a place" hidden=${!isOpen}>
        ${found.map(
          (
            place,
            i,
          ) => html`<li key=${i} id="found-${i}" class="row between" role="option" aria-selected=${String(i === active)} data-cell=${place.cell}
            onPointerDown=${(/** @type {Event} */ event) => {
              // Before the field loses the focus, which closes the list.
              event.preventDefault()
              this.choose(place)
            }}>
            ${placeLabel(place)} <small lang="bn">${place.name_bn}</small>
          </li>`,
        )}
      </ul>
      <p id="found-note" class=${isOpen ? 'note unseen' : 'note'} role="status">${note}</p>
    </div>`
  }
}
