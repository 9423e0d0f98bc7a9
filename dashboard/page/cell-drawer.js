// One cell, opened: what is cached in each tier, from which run, the last error; and the buttons to refresh and to purge it.
// Reads the cell again while it is open, so that the effect of an order is seen.

import { byId, element, setChildren, setText } from './dom.js'
import { factList, failureLabel, ownSentence, placeLabel, placeText } from './labels.js'
import { order, read } from './listener.js'

/** @typedef {import('./contract.ts').CellReport} CellReport */
/** @typedef {import('./contract.ts').Entry} Entry */
/** @typedef {import('./labels.js').Words} Words */

const readEveryMs = 2_000

const placesAtFirst = 10

const stateTones = { fresh: 'good', stale: 'warn', expired: 'bad' }

/**
 * @param {object} parts
 * @param {() => Words} parts.words
 * @param {(question: import('./purge-question.js').Question) => void} parts.ask
 * @param {(error: unknown) => void} parts.onFault
 */
export const createCellDrawer = ({ words, ask, onFault }) => {
  const dialog = /** @type {HTMLDialogElement} */ (byId('cell'))
  const body = byId('cell-body')
  const result = byId('cell-result')
  const buttons = ['cell-refresh', 'cell-soft', 'cell-hard', 'cell-area'].map(
    id => /** @type {HTMLButtonElement} */ (byId(id)),
  )
  /** @type {string | undefined} */
  let opened
  /** @type {CellReport | undefined} */
  let report
  let showsAllPlaces = false
  let readAt = 0

  /** Says how an order went. @param {boolean} isFault @param {...(Node | string)} parts */
  const tell = (isFault, ...parts) => {
    result.classList.toggle('fault', isFault)
    result.replaceChildren(...parts)
  }
  const show = () => {
    const { text, figures } = words()
    const [latitude = 0, longitude = 0] = (opened ?? '').split(',').map(Number)
    setText(byId('cell-title'), text('cellAt', figures.plain(latitude), figures.plain(longitude)))
    byId('cell-area').hidden = !report?.areas?.length
    if (!report) {
      setChildren(body, [element('p', { class: 'empty' }, text('loadingCell'))])
      return
    }
    setChildren(body, sectionsOf(report, showsAllPlaces, words()))
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

  /** @param {() => Promise<{ code: string, message: string } | null | undefined>} act gives its failure @param {import('./texts.js').TextName} done */
  const run = async (act, done) => {
    const { text } = words()
    for (const button of buttons) button.disabled = true
    tell(false, text('working'))
    try {
      const failure = await act()
      if (failure) {
        const code = failureLabel(failure.code, words())
        tell(true, text('failedOrder', ''), code, ' ', ownSentence(failure.message))
      } else tell(false, text(done))
    } catch (error) {
      onFault(error)
      tell(true, text('failedOrder', error instanceof Error ? error.message : String(error)))
    }
    for (const button of buttons) button.disabled = false
    await readAgain()
  }

  const [refresh, soft, hard] = buttons
  const purge = async () => {
    await order('/cache/purge', { scope: opened })
    return undefined
  }
  const askToRemove = () => {
    const id = opened
    if (id !== undefined)
      ask({
        scope: id,
        title: 'purgeCellTitle',
        sentence: words().text('purgeCellText'),
        soft: 'purgeSoft',
        hard: 'purgeHard',
        onDone: kind => {
          if (opened !== id) return
          tell(false, words().text(kind === 'soft' ? 'purgedSoft' : 'purgedHard'))
          void readAgain()
        },
      })
  }
  const askForArea = () => {
    const id = opened
    const { text } = words()
    const areas = report?.areas?.map(area => ({
      scope: `${area.type}/${area.id}`,
      label: placeText(area, words()).join(' '),
    }))
    if (areas)
      ask({
        areas,
        title: 'purgeAreaTitle',
        sentence: text('purgeAreaText'),
        soft: 'purgeSoft',
        hard: 'purgeHard',
        onDone: kind => {
          if (opened !== id) return
          tell(false, words().text(kind === 'soft' ? 'purgedArea' : 'removedArea'))
          void readAgain()
        },
      })
  }
  refresh?.addEventListener('click', () =>
    run(async () => {
      const answer = /** @type {CellReport} */ (
        await order(`/cache/refresh?of=${encodeURIComponent(opened ?? '')}`)
      )
      return answer.gateway?.lastFailure
    }, 'refreshed'),
  )
  soft?.addEventListener('click', () => run(purge, 'purgedSoft'))
  hard?.addEventListener('click', askToRemove)
  byId('cell-area').addEventListener('click', askForArea)
  body.addEventListener('click', event => {
    if (!(event.target instanceof Element) || !event.target.closest('#more-places')) return
    showsAllPlaces = true
    show()
    body.focus()
  })
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
      showsAllPlaces = false
      tell(false)
      show()
      if (!dialog.open) dialog.showModal()
      void readAgain()
    },
    show: () => {
      if (opened !== undefined) show()
    },
    /** To be called often: reads the open cell again. */
    follow: () => {
      if (opened === undefined || performance.now() - readAt < readEveryMs) return
      readAt = performance.now()
      void readAgain()
    },
  }
}

/** @param {CellReport} report @param {boolean} showsAllPlaces @param {Words} words @returns {HTMLElement[]} */
const sectionsOf = ({ shared, gateway, at, places, placeCount }, showsAllPlaces, words) => {
  const { text, figures } = words
  /** @param {string | null | undefined} iso */
  const instant = iso => figures.instant(iso, at, true)
  /** @param {string} title @param {...Node} children */
  const section = (title, ...children) => element('section', {}, element('h3', {}, title), ...children)
  /** @param {string} sentence */
  const empty = sentence => element('p', { class: 'empty' }, sentence)
  /** @param {Entry | null | undefined} entry */
  const entryOf = entry =>
    entry
      ? factList([
          entry.state !== undefined && [
            text('state'),
            element('span', { class: `state ${stateTones[entry.state]}` }, text(entry.state)),
          ],
          entry.upstream !== null && [text('upstream'), entry.upstream],
          [text('fetched'), instant(entry.fetchedAt)],
          [text('run'), instant(entry.run)],
          entry.dueAt !== undefined && [text('dueAt'), instant(entry.dueAt)],
          entry.freshUntil !== undefined && [text('freshUntil'), instant(entry.freshUntil)],
          entry.usableUntil !== undefined && [text('usableUntil'), instant(entry.usableUntil)],
          [text('size'), figures.bytes(entry.bytes)],
          entry.purged !== null && [text('purged'), text(entry.purged)],
        ])
      : empty(text('nothingCached'))
  const failure = gateway?.lastFailure
  const sections = [
    section(text('inMemory'), entryOf(gateway?.memory)),
    section(
      text('inStore', shared.kind === 'redis' ? text('redis') : text('embedded')),
      shared.fault ? element('p', { class: 'result fault' }, shared.fault) : entryOf(shared.entry),
    ),
    failure
      ? section(
          text('lastError'),
          factList([
            [instant(failure.failedAt), failureLabel(failure.code, words)],
            [text('attempts'), figures.count(failure.attempts)],
            [text('backoffUntil'), instant(failure.backoffUntil)],
          ]),
          ownSentence(failure.message),
        )
      : section(text('lastError'), empty(text('noError'))),
    section(
      text('requests'),
      factList([
        [text('lastRequested'), instant(gateway?.lastRequestedAt)],
        [text('loadingNow'), text(gateway?.loading ? 'yes' : 'no')],
      ]),
    ),
  ]
  if (gateway?.slices) sections.splice(1, 0, section(text('slices'), slicesOf(gateway.slices, at, words)))
  if (places && places.length > 0)
    sections.unshift(
      section(text('placesHere'), ...placesOf(places, placeCount ?? places.length, showsAllPlaces, words)),
    )
  return sections
}

/**
 * @param {readonly import('./contract.ts').Place[]} places @param {number} count of all, which may be more
 * @param {boolean} showsAll @param {Words} words
 */
const placesOf = (places, count, showsAll, words) => {
  const { text, figures } = words
  const shown = showsAll ? places : places.slice(0, placesAtFirst)
  const left = figures.count(count - shown.length)
  const list = element(
    'ul',
    { class: 'places' },
    ...shown.map(place => element('li', {}, placeLabel(place, words))),
  )
  if (count === shown.length) return [list]
  return [
    list,
    shown.length < places.length
      ? element('button', { type: 'button', id: 'more-places', class: 'quiet' }, text('moreRows', left))
      : element('p', { class: 'note' }, text('placesLeftOut', left)),
  ]
}

/** @param {import('./contract.ts').Slices} slices @param {string} at @param {Words} words */
const slicesOf = ({ quarterHours, hours, days, now }, at, { text, figures }) => {
  /** @param {import('./contract.ts').Steps} steps */
  const span = ({ from, to, count }) =>
    `${figures.count(count)} · ${figures.instant(from, at)} – ${figures.instant(to, at)}`
  return factList([
    now !== null && [
      text('sliceNow'),
      `${figures.instant(now.time, at)} · ${figures.degrees(now.temperature_2m)} · ${figures.millimetres(now.precipitation)}`,
    ],
    [text('quarterHours'), span(quarterHours)],
    [text('hours'), span(hours)],
    [text('days'), `${figures.count(days.count)} · ${figures.day(days.from)} – ${figures.day(days.to)}`],
  ])
}
