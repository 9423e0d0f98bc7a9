// The cells as a table for screen readers, with what needs attention first. Rows keep their places until another choice.

import { Component } from './preact.js'
import { cellName, figures, html } from './view.js'

/** @typedef {import('./contract.ts').Cell} Cell */

const rowsAtOnce = 100
/** @type {import('./contract.ts').CellState[]} */
const order = ['failed', 'stale', 'absent', 'fresh']

/** @extends {Component<{ cells: ReadonlyMap<string, Cell>, ageOf: (cell: Cell) => number, onOpen: (id: string) => void }>} */
export class CellTable extends Component {
  isOpen = false
  chosenState = 'all'
  most = rowsAtOnce
  /** The cells of the chosen state in the order of the rows. @type {string[]} */
  ids = []
  /** How many cells were known when they were ordered. */
  known = 0

  /** @param {object} change */
  choose(change) {
    Object.assign(this, change)
    const cells = [...this.props.cells.values()]
    this.known = cells.length
    this.ids = cells
      .filter(({ state }) => this.chosenState === 'all' || state === this.chosenState)
      .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || b.demand - a.demand)
      .map(({ id }) => id)
    this.forceUpdate()
  }

  componentDidUpdate() {
    if (this.isOpen && this.known !== this.props.cells.size) this.choose({})
  }

  /** @param {string} id */
  row = id => {
    const { cells, ageOf, onOpen } = this.props
    const cell = cells.get(id)
    return (
      cell &&
      html`<tr key=${id} data-state=${cell.state}>
        <th scope="row"><button type="button" class="quiet link" onClick=${() => onOpen(id)}>${cellName(cell)}</button></th>
        <td>${cell.state}</td>
        <td class="number">${figures.duration(cell.ageSeconds === null ? null : ageOf(cell))}</td>
        <td class="number">${cell.demand > 0 ? figures.measured(cell.demand) : 0}</td>
      </tr>`
    )
  }

  render() {
    const visible = this.isOpen ? this.ids.slice(0, this.most) : []
    const left = Math.min(rowsAtOnce, this.ids.length - visible.length)
    return html`<details id="table" onToggle=${(/** @type {{ currentTarget: HTMLDetailsElement }} */ event) => this.choose({ isOpen: event.currentTarget.open })}>
      <summary>All cells as a table</summary>
      <div class="row between table-tools">
        <label>State${' '}
          <select id="table-state" onChange=${(/** @type {{ currentTarget: HTMLSelectElement }} */ event) => this.choose({ chosenState: event.currentTarget.value, most: rowsAtOnce })}>
            <option value="all">all</option>
            ${order.map(state => html`<option value=${state}>${state}</option>`)}
          </select>
        </label>
        <span id="table-count" role="status">Cells: ${figures.count(visible.length)} of ${figures.count(this.ids.length)}</span>
      </div>
      <div class="scroll" tabindex="0" role="group" aria-label="All cells as a table">
        <table>
          <thead><tr>
            <th scope="col">Cell</th><th scope="col">State</th>
            <th scope="col" class="number">Age</th><th scope="col" class="number">Demand</th>
          </tr></thead>
          <tbody id="table-rows">${visible.map(this.row)}</tbody>
        </table>
        ${this.isOpen && left > 0 && html`<button id="table-more" type="button" class="quiet" onClick=${() => this.choose({ most: this.most + rowsAtOnce })}>Show ${figures.count(left)} more</button>`}
      </div>
    </details>`
  }
}
