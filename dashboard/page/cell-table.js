// The cells as a table, for screen readers and other readers: the same states, ages and demand as on the map,
// what needs attention first. Written only while it is open.

import { byId, element, setChildren, setText } from './dom.js'

/** @typedef {import('./contract.ts').Cell} Cell */

const rowsAtOnce = 100
/** @type {import('./contract.ts').CellState[]} */
const order = ['failed', 'stale', 'absent', 'fresh']

/**
 * @param {object} parts
 * @param {() => Iterable<Cell>} parts.cells
 * @param {(cell: Cell) => number} parts.ageOf
 * @param {(id: string) => void} parts.onOpen
 * @param {() => { text: import('./texts.js').Texts, figures: import('../../src/common/page/figures.js').Figures }} parts.words
 */
export const createCellTable = ({ cells, ageOf, onOpen, words }) => {
  const details = /** @type {HTMLDetailsElement} */ (byId('table'))
  const filter = /** @type {HTMLSelectElement} */ (byId('table-state'))
  const rows = byId('table-rows')
  const more = byId('table-more')
  let shown = rowsAtOnce

  /** @param {Cell} cell */
  const columnsOf = cell => {
    const { text, figures } = words()
    const name = text('cellAt', figures.plain(cell.latitude), figures.plain(cell.longitude))
    const age = figures.duration(cell.ageSeconds === null ? null : ageOf(cell))
    const demand = cell.demand > 0 ? figures.measured(cell.demand) : figures.count(0)
    return [
      element('th', { scope: 'row' }, element('button', { type: 'button', class: 'link' }, name)),
      element('td', {}, text(cell.state)),
      element('td', { class: 'number' }, age),
      element('td', { class: 'number' }, demand),
    ]
  }

  const write = () => {
    if (!details.open) return
    const { text, figures } = words()
    const chosen = [...cells()]
      .filter(({ state }) => filter.value === 'all' || state === filter.value)
      .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || b.demand - a.demand)
    const visible = chosen.slice(0, shown)
    rows.replaceChildren(
      ...visible.map(cell =>
        element('tr', { 'data-row': cell.id, 'data-state': cell.state }, ...columnsOf(cell)),
      ),
    )
    setText(
      byId('table-count'),
      text('rowsShown', figures.count(visible.length), figures.count(chosen.length)),
    )
    const left = Math.min(rowsAtOnce, chosen.length - visible.length)
    more.hidden = left <= 0
    setText(more, text('moreRows', figures.count(left)))
  }

  rows.addEventListener('click', ({ target }) => {
    const row = target instanceof HTMLButtonElement ? target.closest('tr') : null
    if (row) onOpen(row.dataset.row ?? '')
  })
  details.addEventListener('toggle', write)
  filter.addEventListener('change', () => {
    shown = rowsAtOnce
    write()
  })
  more.addEventListener('click', () => {
    shown += rowsAtOnce
    write()
  })

  return {
    write,
    writeFilter: () => {
      const { text } = words()
      const before = filter.value || 'all'
      filter.replaceChildren(
        element('option', { value: 'all' }, text('allStates')),
        ...order.map(state => element('option', { value: state }, text(state))),
      )
      filter.value = before
    },
    /** Rows stay where they are, so that nothing moves under the reader. @param {ReadonlyMap<string, Cell>} known */
    update: known => {
      if (!details.open) return
      for (const row of rows.querySelectorAll('tr')) {
        const cell = known.get(row.dataset.row ?? '')
        if (!cell) continue
        setChildren(row, columnsOf(cell))
        row.dataset.state = cell.state
      }
    },
  }
}
