// One cell, opened: what is cached in each tier, from which run, the last error; and the orders to refresh and to purge it.
// Reads the cell again while it is open, so that the effect of an order is seen.

import { byId, element, setChildren, setText } from './dom.js'
import { order, read } from './listener.js'
import { factRows, placeLabel } from './panels.js'

/** @typedef {import('./contract.ts').CellReport} CellReport */
/** @typedef {import('./contract.ts').Entry} Entry */
/** @typedef {{ text: import('./texts.js').Texts, figures: import('./figures.js').Figures }} Words */

const readEveryMs = 2_000

/** @param {{ words: () => Words, onFault: (error: unknown) => void }} parts */
export const createCellDrawer = ({ words, onFault }) => {
  const dialog = /** @type {HTMLDialogElement} */ (byId('cell'))
  const body = byId('cell-body')
  const result = byId('cell-result')
  const buttons = ['cell-refresh', 'cell-soft', 'cell-hard'].map(
    id => /** @type {HTMLButtonElement} */ (byId(id)),
  )
  /** @type {string | undefined} */
  let opened
  /** @type {CellReport | undefined} */
  let report

  const show = () => {
    const { text, figures } = words()
    const [latitude = 0, longitude = 0] = (opened ?? '').split(',').map(Number)
    setText(byId('cell-title'), text('cellAt', figures.plain(latitude), figures.plain(longitude)))
    if (!report) {
      setChildren(body, [element('p', { class: 'empty' }, text('loadingCell'))])
      return
    }
    setChildren(body, sectionsOf(report, words()))
  }

  const readAgain = async () => {
    const id = opened
    if (id === undefined) return
    try {
      const answer = /** @type {CellReport} */ (await read(`/cache/cell?of=${encodeURIComponent(id)}`))
      if (opened !== id) return
      report = answer
      show()
    } catch (error) {
      if (opened !== id) return
      onFault(error)
      if (!report)
        setChildren(body, [
          element('p', { class: 'result fault' }, error instanceof Error ? error.message : String(error)),
        ])
    }
  }

  /** @param {() => Promise<string | undefined>} act gives the sentence of a failure @param {import('./texts.js').TextName} done */
  const run = async (act, done) => {
    const { text } = words()
    for (const button of buttons) button.disabled = true
    result.classList.remove('fault')
    setText(result, text('working'))
    try {
      const failure = await act()
      result.classList.toggle('fault', Boolean(failure))
      setText(result, failure ? text('failedOrder', failure) : text(done))
    } catch (error) {
      onFault(error)
      result.classList.add('fault')
      setText(result, text('failedOrder', error instanceof Error ? error.message : String(error)))
    }
    for (const button of buttons) button.disabled = false
    await readAgain()
  }

  const [refresh, soft, hard] = buttons
  /** @param {boolean} soft */
  const purge = async soft => {
    await order('/cache/purge', { scope: opened, soft })
    return undefined
  }
  refresh?.addEventListener('click', () =>
    run(async () => {
      const answer = /** @type {CellReport} */ (
        await order(`/cache/refresh?of=${encodeURIComponent(opened ?? '')}`)
      )
      return answer.gateway?.lastFailure?.message
    }, 'refreshed'),
  )
  soft?.addEventListener('click', () => run(() => purge(true), 'purgedSoft'))
  hard?.addEventListener('click', () => run(() => purge(false), 'purgedHard'))
  byId('cell-close').addEventListener('click', () => dialog.close())
  // A press beside the drawer closes it, as Escape does.
  dialog.addEventListener('click', event => {
    if (event.target === dialog) dialog.close()
  })
  dialog.addEventListener('close', () => {
    opened = undefined
    report = undefined
  })

  return {
    /** @param {string} id of a cell */
    open: id => {
      opened = id
      report = undefined
      setText(result, '')
      result.classList.remove('fault')
      show()
      if (!dialog.open) dialog.showModal()
      void readAgain()
    },
    show: () => {
      if (opened !== undefined) show()
    },
    /** To be called often: reads the open cell again. */
    follow: (() => {
      let last = 0
      return () => {
        if (opened === undefined || performance.now() - last < readEveryMs) return
        last = performance.now()
        void readAgain()
      }
    })(),
  }
}

/** @param {CellReport} report @param {Words} words @returns {HTMLElement[]} */
const sectionsOf = ({ shared, gateway, at, places }, words) => {
  const { text, figures } = words
  /** @param {string | null | undefined} iso */
  const instant = iso => figures.instant(iso, at, true)
  /** @param {string} title @param {...Node} children */
  const section = (title, ...children) => element('section', {}, element('h3', {}, title), ...children)
  /** @param {Entry | null} entry */
  const entryOf = entry =>
    entry
      ? element(
          'dl',
          { class: 'facts' },
          ...factRows([
            entry.state !== undefined && [
              text('state'),
              element('span', { class: `state ${entry.state}` }, text(entry.state)),
            ],
            [text('fetched'), instant(entry.fetchedAt)],
            [text('run'), instant(entry.run)],
            entry.dueAt !== undefined && [text('dueAt'), instant(entry.dueAt)],
            entry.freshUntil !== undefined && [text('freshUntil'), instant(entry.freshUntil)],
            entry.usableUntil !== undefined && [text('usableUntil'), instant(entry.usableUntil)],
            [text('size'), figures.bytes(entry.bytes)],
            entry.purged !== null && [text('purged'), text(entry.purged)],
          ]),
        )
      : element('p', { class: 'empty' }, text('nothingCached'))
  const failure = gateway?.lastFailure
  return [
    ...(places && places.length > 0 ? [section(text('placesHere'), placesOf(places, words))] : []),
    section(text('inMemory'), entryOf(gateway?.memory ?? null)),
    ...(gateway?.slices ? [section(text('slices'), slicesOf(gateway.slices, at, words))] : []),
    section(
      text('inStore', shared.kind === 'redis' ? text('redis') : text('embedded')),
      shared.fault ? element('p', { class: 'result fault' }, shared.fault) : entryOf(shared.entry),
    ),
    section(
      text('lastError'),
      failure
        ? element(
            'dl',
            { class: 'facts' },
            ...factRows([
              [instant(failure.failedAt), element('span', { class: 'state failed' }, failure.code)],
              [text('attempts'), figures.count(failure.attempts)],
              [text('backoffUntil'), instant(failure.backoffUntil)],
            ]),
          )
        : element('p', { class: 'empty' }, text('noError')),
      ...(failure ? [element('p', { lang: 'en' }, failure.message)] : []),
    ),
    section(
      text('requests'),
      element(
        'dl',
        { class: 'facts' },
        ...factRows([
          [text('lastRequested'), instant(gateway?.lastRequestedAt)],
          [text('loadingNow'), text(gateway?.loading ? 'yes' : 'no')],
        ]),
      ),
    ),
  ]
}

/** @param {readonly import('./contract.ts').Place[]} places @param {Words} words */
const placesOf = (places, words) =>
  element('ul', { class: 'places' }, ...places.map(place => element('li', {}, placeLabel(place, words))))

/** @param {import('./contract.ts').Slices} slices @param {string} at @param {Words} words */
const slicesOf = ({ quarterHours, hours, days, now }, at, { text, figures }) => {
  /** @param {import('./contract.ts').Steps} steps */
  const span = ({ from, to, count }) =>
    `${figures.count(count)} · ${figures.instant(from, at)} – ${figures.instant(to, at)}`
  return element(
    'dl',
    { class: 'facts' },
    ...factRows([
      now !== null && [
        text('sliceNow'),
        `${figures.instant(now.time, at)} · ${figures.degrees(now.temperature_2m)} · ${figures.millimetres(now.precipitation)}`,
      ],
      [text('quarterHours'), span(quarterHours)],
      [text('hours'), span(hours)],
      [text('days'), `${figures.count(days.count)} · ${figures.day(days.from)} – ${figures.day(days.to)}`],
    ]),
  )
}
