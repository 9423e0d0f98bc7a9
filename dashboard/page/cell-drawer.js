// One opened cell: what each tier has, the last error, and the buttons. It is read again while open, so that changes are seen.

import { order, read } from './listener.js'
import { Component, createRef } from './preact.js'
import {
  badge,
  cellName,
  factList,
  failureLabel,
  figures,
  html,
  messageOf,
  ownSentence,
  placeLabel,
  placeName,
} from './view.js'

/** @typedef {import('./contract.ts').CellReport} CellReport */
/** @typedef {import('./contract.ts').Entry} Entry */
/** @typedef {import('./purge-question.js').Question} Question */

const readEveryMs = 2_000
const placesAtFirst = 10
const stateTones = /** @type {const} */ ({ fresh: 'good', stale: 'warn', expired: 'bad' })

/** @typedef {{ report?: CellReport, fault?: string, said?: unknown, isFault?: boolean, isBusy?: boolean, showsAllPlaces?: boolean }} State */
/** @extends {Component<{ id: string, ask: (question: Question) => void, onFault: (error: unknown) => void, onClose: () => void }, State>} */
export class CellDrawer extends Component {
  /** @type {State} */
  state = {}
  dialog = /** @type {import('./preact.js').RefObject<HTMLDialogElement>} */ (createRef())
  body = /** @type {import('./preact.js').RefObject<HTMLElement>} */ (createRef())
  isOpen = true

  componentDidMount() {
    this.dialog.current?.showModal()
    void this.readAgain()
    this.reading = setInterval(() => {
      if (!document.hidden) void this.readAgain()
    }, readEveryMs)
  }

  componentWillUnmount() {
    this.isOpen = false
    clearInterval(this.reading)
  }

  readAgain = async () => {
    try {
      const report = await read(`/cache/cell?of=${encodeURIComponent(this.props.id)}`)
      if (this.isOpen) this.setState({ report })
    } catch (error) {
      if (!this.isOpen) return
      this.props.onFault(error)
      this.setState({ fault: messageOf(error) })
    }
  }

  /** Says how an order went. @param {unknown} said */
  tell = (said, isFault = false) => {
    if (this.isOpen) this.setState({ said, isFault, isBusy: false })
  }

  /** @param {() => Promise<{ code: string, message: string } | null | undefined>} act gives its failure @param {string} done */
  async run(act, done) {
    this.setState({ said: 'Working…', isFault: false, isBusy: true })
    try {
      const failure = await act()
      if (failure)
        this.tell(html`Not done: ${failureLabel(failure.code)} ${ownSentence(failure.message)}`, true)
      else this.tell(done)
    } catch (error) {
      this.props.onFault(error)
      this.tell(`Not done: ${messageOf(error)}`, true)
    }
    await this.readAgain()
  }

  refresh = () =>
    this.run(async () => {
      const { gateway } = await order(`/cache/refresh?of=${encodeURIComponent(this.props.id)}`)
      return gateway?.lastFailure
    }, 'The cell was loaded.')

  purge = () =>
    this.run(
      () => order('/cache/purge', { scope: this.props.id }).then(() => null),
      'The cell was purged on all instances. It is served as stale until it is reloaded.',
    )

  /** @param {Pick<Question, 'scope' | 'areas' | 'title' | 'sentence'>} question @param {string} purged @param {string} removed */
  ask = (question, purged, removed) =>
    this.props.ask({
      ...question,
      soft: 'Purge',
      hard: 'Remove',
      onDone: kind => {
        this.tell(kind === 'soft' ? purged : removed)
        if (this.isOpen) void this.readAgain()
      },
    })

  askToRemove = () =>
    this.ask(
      {
        scope: this.props.id,
        title: 'Remove this cell?',
        sentence:
          'Purge keeps the cell as stale until it is reloaded. Remove deletes it on all instances; requests then fail if it can’t be loaded.',
      },
      'The cell was purged on all instances. It is served as stale until it is reloaded.',
      'The cell was removed on all instances.',
    )

  askForArea = () =>
    this.ask(
      {
        areas: (this.state.report?.areas ?? []).map(area => ({
          scope: `${area.type}/${area.id}`,
          label: `${placeName(area)} ${area.type}`,
        })),
        title: 'Purge an area?',
        sentence:
          'This affects every cell of the place and of the places below it. Purge keeps them as stale until they are reloaded. After Remove, requests wait for the provider.',
      },
      'The area was purged on all instances. Its cells are served as stale until they are reloaded.',
      'The area was removed on all instances.',
    )

  showAllPlaces = () => {
    this.setState({ showsAllPlaces: true })
    this.body.current?.focus()
  }

  render() {
    const { report, fault, said, isFault, isBusy, showsAllPlaces } = this.state
    const { id, onClose } = this.props
    const [latitude = 0, longitude = 0] = id.split(',').map(Number)
    const close = () => this.dialog.current?.close()
    // A press beside the drawer closes it, as Escape does.
    const press = (/** @type {Event} */ event) => event.target === event.currentTarget && close()
    return html`<dialog id="cell" class="drawer" ref=${this.dialog} aria-labelledby="cell-title" onClose=${onClose} onClick=${press}>
      <header class="row between">
        <h2 id="cell-title" tabindex="-1">${cellName({ latitude, longitude })}</h2>
        <button type="button" class="quiet square" aria-label="Close" onClick=${close}>×</button>
      </header>
      <p id="cell-result" class=${isFault ? 'fault' : ''} role="status">${said}</p>
      <div id="cell-body" class="drawer-body" ref=${this.body} tabindex="0" role="group" aria-labelledby="cell-title">
        ${report && placesOf(report, showsAllPlaces === true, this.showAllPlaces)}
        ${report ? sectionsOf(report) : html`<p class=${fault ? 'fault' : 'note'}>${fault ?? 'Reading the cell…'}</p>`}
      </div>
      <footer class="row">
        <button id="cell-refresh" type="button" disabled=${isBusy} title="Loads the cell from the provider now; spends budget." onClick=${this.refresh}>Refresh</button>
        <button type="button" class="quiet" disabled=${isBusy} onClick=${this.purge}>Purge</button>
        <button type="button" class="quiet danger" disabled=${isBusy} onClick=${this.askToRemove}>Remove…</button>
        ${report?.areas?.length ? html`<button type="button" class="quiet" disabled=${isBusy} onClick=${this.askForArea}>Purge an area…</button>` : null}
      </footer>
    </dialog>`
  }
}

/** @param {string} title @param {...unknown} parts */
const section = (title, ...parts) => html`<section><h3>${title}</h3>${parts}</section>`

/** @param {CellReport} report */
const sectionsOf = ({ shared, gateway, at }) => {
  /** @param {string | null | undefined} iso */
  const instant = iso => figures.instant(iso, at, true)
  /** @param {Entry | null | undefined} entry */
  const entryOf = entry =>
    entry
      ? factList([
          entry.state !== undefined && ['State', badge(entry.state, stateTones[entry.state])],
          entry.upstream !== null && ['Upstream', entry.upstream],
          ['Fetched', instant(entry.fetchedAt)],
          ['Model run', instant(entry.run)],
          entry.dueAt !== undefined && ['Due', instant(entry.dueAt)],
          entry.freshUntil !== undefined && ['Fresh until', instant(entry.freshUntil)],
          entry.usableUntil !== undefined && ['Expires', instant(entry.usableUntil)],
          ['Size', figures.bytes(entry.bytes)],
          entry.purged !== null && ['Purged', entry.purged === 'soft' ? 'stale' : 'removed'],
        ])
      : html`<p class="note">Nothing is cached here.</p>`
  const failure = gateway?.lastFailure
  return [
    section('In memory', entryOf(gateway?.memory)),
    gateway?.slices && section('Slices', slicesOf(gateway.slices, at)),
    section(
      `In the store (${shared.kind === 'redis' ? 'Redis' : shared.kind})`,
      shared.fault ? html`<p class="fault">${shared.fault}</p>` : entryOf(shared.entry),
    ),
    section(
      'Last error',
      failure
        ? [
            factList([
              [instant(failure.failedAt), failureLabel(failure.code)],
              ['Consecutive failures', figures.count(failure.attempts)],
              ['Next attempt', instant(failure.backoffUntil)],
            ]),
            ownSentence(failure.message),
          ]
        : html`<p class="note">No error since the last success.</p>`,
    ),
    section(
      'Requests',
      factList([
        ['Last requested', instant(gateway?.lastRequestedAt)],
        ['Loading now', gateway?.loading ? 'yes' : 'no'],
      ]),
    ),
  ]
}

/** @param {CellReport} report @param {boolean} showsAll @param {() => void} onMore */
const placesOf = ({ places, placeCount }, showsAll, onMore) => {
  if (!places?.length) return null
  const shown = showsAll ? places : places.slice(0, placesAtFirst)
  const left = (placeCount ?? places.length) - shown.length
  const more =
    shown.length < places.length
      ? html`<button type="button" id="more-places" class="quiet" onClick=${onMore}>Show ${figures.count(left)} more</button>`
      : html`<p class="note">and ${figures.count(left)} more</p>`
  return section(
    'Places in this cell',
    html`<ul class="places legend">${shown.map(place => html`<li>${placeLabel(place)}</li>`)}</ul>`,
    left > 0 && more,
  )
}

/** @param {import('./contract.ts').Slices} slices @param {string} at */
const slicesOf = ({ quarterHours, hours, days, now }, at) => {
  /** @param {import('./contract.ts').Steps} steps */
  const span = ({ from, to, count }) =>
    `${figures.count(count)} · ${figures.instant(from, at)} – ${figures.instant(to, at)}`
  return factList([
    now !== null && [
      'Now',
      `${figures.instant(now.time, at)} · ${figures.degrees(now.temperature_2m)} · ${figures.millimetres(now.precipitation)}`,
    ],
    ['Quarter-hours', span(quarterHours)],
    ['Hours', span(hours)],
    ['Days', `${figures.count(days.count)} · ${figures.day(days.from)} – ${figures.day(days.to)}`],
  ])
}
