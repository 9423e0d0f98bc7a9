// The dashboard: holds the state (theme, newest status, cells) and shows the panels.

import { secondsBetween } from '../../src/common/page/figures.js'
import { applyTheme, chosenTheme, drawInOtherColours, keepTheme } from '../../src/common/page/preferences.js'
import { Attention } from './attention.js'
import { CellDrawer } from './cell-drawer.js'
import { CellTable } from './cell-table.js'
import { Charts } from './charts.js'
import { KeyPanel } from './key-panel.js'
import { Refused, TokenNeeded, token } from './listener.js'
import { Instances, TopLists } from './lists.js'
import { CellMap } from './map-panel.js'
import { Budget, Parts, Tiles } from './panels.js'
import { PlaceSearch } from './place-search.js'
import { follow } from './polling.js'
import { Component, createRef, render } from './preact.js'
import { PurgeQuestion } from './purge-question.js'
import { TokenDialog } from './token-dialog.js'
import { figures, html, timeZone } from './view.js'

/** @typedef {import('./contract.ts').Cell} Cell */
/** @typedef {import('./contract.ts').Status} Status */
/** @typedef {import('./purge-question.js').Question} Question */

/**
 * @typedef {object} State
 * @property {Status} [status] the newest
 * @property {import('./contract.ts').Cells} [report]
 * @property {boolean} isConnected
 * @property {number | undefined} [lostAt] when the connection was lost, by the gateway's time in ms
 * @property {string} lostBecause the listener's own sentence, where it gave one
 * @property {string} announcement for screen readers
 * @property {string | undefined} [opened] the cell of the drawer
 * @property {{ id: string }} [found] the cell that the search found
 * @property {Question | undefined} [question]
 * @property {{ isWrong: boolean, onGiven: () => void } | undefined} [tokenAsked]
 * @property {number} colours another number for each theme, in which charts are drawn anew
 */

/** @extends {Component<{}, State>} */
class Dashboard extends Component {
  /** @type {State} */
  state = { isConnected: false, lostBecause: '', announcement: '', colours: 0 }
  bar = /** @type {import('./preact.js').RefObject<HTMLElement>} */ (createRef())
  heardAt = 0

  componentDidMount() {
    drawInOtherColours(this.redraw)
    // The map stays below the bar, whose height follows the width.
    const bar = this.bar.current
    if (bar)
      new ResizeObserver(() =>
        document.documentElement.style.setProperty('--bar-height', `${bar.offsetHeight}px`),
      ).observe(bar)
    setInterval(() => {
      if (!document.hidden) this.setState({})
    }, 1_000)
    void follow({
      onConnected: () => {
        this.setState(({ lostAt, announcement }) => ({
          announcement: lostAt === undefined ? announcement : 'Connected again.',
          lostAt: undefined,
          isConnected: true,
        }))
      },
      onLost: error =>
        this.setState({
          isConnected: false,
          lostBecause: error instanceof Refused ? error.message : '',
          lostAt: this.state.lostAt ?? Date.parse(this.now()),
        }),
      onTokenNeeded: isWrong =>
        new Promise(resolve => this.setState({ tokenAsked: { isWrong, onGiven: () => resolve() } })),
      onStatus: status => {
        this.heardAt = performance.now()
        this.setState({ status })
      },
      onCells: report => this.setState({ report }),
    })
  }

  redraw = () => this.setState(({ colours }) => ({ colours: colours + 1 }))

  /** The gateway's time, which goes on between two answers. */
  now = () => {
    const { status } = this.state
    const at = status ? Date.parse(status.at) + (performance.now() - this.heardAt) : Date.now()
    return new Date(at).toISOString()
  }

  /** @param {Cell} cell @returns {number} seconds */
  ageOf = cell =>
    (cell.ageSeconds ?? 0) + Math.max(0, secondsBetween(this.state.report?.at ?? this.now(), this.now()))

  /** @param {unknown} error */
  onFault = error => {
    if (error instanceof TokenNeeded)
      // The question that is open is answered to whoever asked it.
      this.setState(({ tokenAsked }) => ({
        tokenAsked: tokenAsked ?? { isWrong: false, onGiven: () => undefined },
      }))
  }

  /** @param {string} id of a cell */
  open = id => this.setState({ opened: id })
  /** @param {Question} question */
  ask = question => this.setState({ question })

  /** @param {string} id of a cell */
  find = id => this.setState({ found: { id }, opened: id })

  purgeAll = () =>
    this.ask({
      scope: 'all',
      title: 'Purge every cell?',
      sentence: `Timelines in memory here: ${figures.count(this.state.status?.cache.entries)}. Purge keeps all cells as stale until they are reloaded. Remove deletes them; requests then wait for the provider, and fail if it can’t load.`,
      soft: 'Purge all',
      hard: 'Remove all',
      onDone: kind =>
        this.setState({
          announcement:
            kind === 'soft'
              ? 'All cells were purged. They are served as stale until they are reloaded.'
              : 'All cells were removed.',
        }),
    })

  /** @param {{ currentTarget: HTMLSelectElement }} event */
  chooseTheme = ({ currentTarget: { value } }) => {
    const theme = value === 'light' || value === 'dark' ? value : 'system'
    keepTheme(theme)
    applyTheme(theme)
    this.redraw()
  }

  header() {
    const { status, lostAt, isConnected } = this.state
    const connection = lostAt !== undefined ? 'lost' : isConnected ? 'live' : 'connecting'
    const words = {
      lost: 'Connection lost',
      live: `Live ${figures.timeOfDay(Date.parse(this.now()), true)}`,
      connecting: 'Connecting…',
    }
    const tones = { lost: 'bad', live: 'good', connecting: '' }
    const forget = () => {
      token.forget()
      location.reload()
    }
    return html`<header id="bar" class="bar between" ref=${this.bar}>
      <div class="row">
        <img src="dashboard/icon.svg" alt="" width="34" height="34" />
        <h1>Abohawa <small>Weather gateway ${status?.version}</small></h1>
      </div>
      <${PlaceSearch} onChoose=${this.find} />
      <div class="row controls">
        <p id="connection" class="badge ${tones[connection]}" data-state=${connection}>${words[connection]}</p>
        ${token.get() !== null && html`<button type="button" class="quiet" onClick=${forget}>Forget the token</button>`}
        <select id="theme" aria-label="Theme" value=${chosenTheme()} onChange=${this.chooseTheme}>
          <option value="system">System</option><option value="light">Light</option><option value="dark">Dark</option>
        </select>
      </div>
    </header>`
  }

  panels() {
    const { status, report, colours, found, isConnected } = this.state
    const cells = new Map(report?.cells.map(cell => [cell.id, cell]))
    return html`<main>
      <section aria-labelledby="attention-title">
        <h2 id="attention-title" class="unseen">Needs attention</h2>
        <ul id="attention" class="row">${status && html`<${Attention} status=${status} />`}</ul>
        <p class="note">Time zone: ${timeZone}</p>
      </section>
      <div class="split">
        <${CellMap} report=${report} found=${found} ageOf=${this.ageOf} onOpen=${this.open} onPurge=${this.purgeAll}
          table=${html`<${CellTable} cells=${cells} ageOf=${this.ageOf} onOpen=${this.open} />`} />
        <div class="side">
          <section class="panel" aria-labelledby="now-title">
            <h2 id="now-title">Right now</h2>
            <dl id="tiles" class="tiles">${status && html`<${Tiles} status=${status} />`}</dl>
          </section>
          ${
            status &&
            html`<${Charts} key=${colours} history=${status.history} />
              <${Budget} status=${status} />
              <div class="cols wide parts"><${Parts} status=${status} /></div>`
          }
        </div>
      </div>
      <div class="lists">
        <section class="panel" aria-labelledby="instances-title">
          <header><h2 id="instances-title">Instances</h2></header>
          <div id="instances" class="scroll" tabindex="0" role="group" aria-label="Instances">${status && html`<${Instances} status=${status} />`}</div>
        </section>
        <${KeyPanel} isConnected=${isConnected} onFault=${this.onFault} />
        <div class="cols">${status && html`<${TopLists} status=${status} />`}</div>
      </div>
    </main>`
  }

  render() {
    const { announcement, lostAt, lostBecause, opened, question, tokenAsked } = this.state
    document.body.classList.toggle('is-lost', lostAt !== undefined)
    return html`
      <a class="skip" href="#map">Skip to the map</a>
      ${this.header()}
      <p id="lost" class="notice bad" role="alert" hidden=${lostAt === undefined}>
        ${
          lostAt !== undefined &&
          `Connection lost at ${figures.timeOfDay(lostAt, true)}. The figures below are from then. Reconnecting… ${lostBecause}`.trim()
        }
      </p>
      <p id="announcement" class="unseen" role="status">${announcement}</p>
      ${this.panels()}
      ${
        opened !== undefined &&
        html`<${CellDrawer} key=${opened} id=${opened} ask=${this.ask} onFault=${this.onFault} onClose=${() => this.setState({ opened: undefined })} />`
      }
      ${
        question &&
        html`<${PurgeQuestion} question=${question} onFault=${this.onFault} onClose=${() => this.setState({ question: undefined })} />`
      }
      ${
        tokenAsked &&
        html`<${TokenDialog} ...${tokenAsked} onClose=${() => this.setState({ tokenAsked: undefined })} />`
      }`
  }
}

applyTheme(chosenTheme())
document.getElementById('unloaded')?.remove()
render(html`<${Dashboard} />`, document.body)
