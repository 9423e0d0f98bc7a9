// The panel of the map: its buttons, the chosen cell in words, and the legend.

import { ageSteps, createMap, dressOf } from './map.js'
import { Component, createRef } from './preact.js'
import { cellName, figures, html } from './view.js'

/** @typedef {import('./contract.ts').Cell} Cell */

/**
 * @typedef {object} Props
 * @property {import('./contract.ts').Cells | undefined} report
 * @property {{ id: string } | undefined} found by the search: it gets the focus
 * @property {(cell: Cell) => number} ageOf
 * @property {(id: string) => void} onOpen
 * @property {() => void} onPurge
 * @property {unknown} table the same cells, below the map
 */

/** @extends {Component<Props, { line: string, isFirst: boolean, isLast: boolean }>} */
export class CellMap extends Component {
  state = { line: '', isFirst: true, isLast: false }
  host = /** @type {import('./preact.js').RefObject<HTMLElement>} */ (createRef())
  /** @type {ReturnType<typeof createMap> | undefined} */
  map

  componentDidMount() {
    const host = this.host.current
    if (!host) return
    const { ageOf } = this.props
    this.map = createMap(host, {
      ageOf,
      onOpen: id => this.props.onOpen(id),
      onChoose: line => {
        if (line !== this.state.line) this.setState({ line })
      },
      describe: cell =>
        [
          cellName(cell),
          cell.state,
          ...(cell.ageSeconds === null ? [] : [`${figures.duration(ageOf(cell))} old`]),
          cell.demand > 0 ? `demand ${figures.measured(cell.demand)}` : 'no demand',
        ].join(' · '),
    })
    this.draw()
  }

  /** @param {Props} before */
  componentDidUpdate({ report, found }) {
    if (report !== this.props.report) this.draw()
    if (found === this.props.found || !this.props.found) return
    this.map?.choose(this.props.found.id)
    this.host.current?.focus()
  }

  draw() {
    if (this.props.report) this.map?.setAll(this.props.report)
    this.map?.paint()
  }

  /** @param {1 | -1} step */
  zoom = step => this.setState(this.map?.zoom(step) ?? {})

  render() {
    const { report, onPurge, table } = this.props
    const { line, isFirst, isLast } = this.state
    return html`<section class="panel country" aria-labelledby="map-title">
      <header class="row between">
        <h2 id="map-title">Cell map</h2>
        <div class="row">
          <button id="zoom-out" type="button" class="quiet square" aria-label="Zoom out" disabled=${isFirst} onClick=${() => this.zoom(-1)}>−</button>
          <button id="zoom-in" type="button" class="quiet square" aria-label="Zoom in" disabled=${isLast} onClick=${() => this.zoom(1)}>+</button>
          <button id="purge-all" type="button" class="quiet" onClick=${onPurge}>Purge all…</button>
        </div>
      </header>
      ${report?.cells.length === 0 && html`<p class="note">No cells yet: the catalogue has no place.</p>`}
      <div class="map-frame">
        <div id="map" class="map" ref=${this.host} tabindex="0" role="application" aria-describedby="map-help map-cell" aria-label="Cell map. Arrow keys move, Enter opens a cell."></div>
      </div>
      <p id="map-cell" aria-live="polite"><b>${line || '\u00a0'}</b></p>
      <p id="map-help" class="unseen">Arrow keys move over the cells, Enter opens one. The table below has the same data.</p>
      <${Legend} cells=${report?.cells ?? []} />
      ${table}
    </section>`
  }
}

/** A sign of the legend. @param {string} look of a cell */
const sign = look => html`<svg class="sample" viewBox="0 0 12 12" width="16" height="16" aria-hidden="true">
  <rect x="1" y="1" width="10" height="10" rx="1" ...${dressOf(look)} />
</svg>`

/** @param {{ cells: readonly Cell[] }} props */
const Legend = ({ cells }) => {
  const states = /** @type {const} */ (['fresh', 'stale', 'failed', 'absent'])
  const ages = [...ageSteps, undefined].map(
    (limit, i) =>
      html`<li>${sign(`fresh age-${i}`)}${limit === undefined ? 'older' : `under ${figures.duration(limit)}`}</li>`,
  )
  return html`<div id="legend" role="group" aria-label="Legend">
    <ul class="legend">
      ${states.map(
        each => html`<li data-state=${each}>
          ${sign(each === 'fresh' ? 'fresh age-0' : each)}${each} <b>${figures.count(cells.filter(({ state }) => state === each).length)}</b>
        </li>`,
      )}
      <li><svg class="sample" viewBox="0 0 12 12" width="16" height="16" aria-hidden="true">
        <circle cx="6" cy="6" r="3" fill="var(--dot)" stroke="var(--dot-edge)" /></svg>dot: demand</li>
    </ul>
    <ul class="legend note"><li>Age of fresh cells:</li>${ages}</ul>
  </div>`
}
