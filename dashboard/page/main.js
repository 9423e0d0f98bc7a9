// The dashboard: shows what comes from the listener, and holds the state: theme, the newest status and the cells.

import { createFigures, secondsBetween } from '../../src/common/page/figures.js'
import { applyTheme, chosenTheme, drawInOtherColours, keepTheme } from '../../src/common/page/preferences.js'
import { showAttention } from './attention.js'
import { createCellDrawer } from './cell-drawer.js'
import { createCellTable } from './cell-table.js'
import { createCharts } from './charts.js'
import { byId, setText } from './dom.js'
import { newestOf } from './history.js'
import { createKeyPanel } from './key-panel.js'
import { Refused, TokenNeeded, token } from './listener.js'
import { showLists } from './lists.js'
import { createMap, showLegend } from './map.js'
import { showBudget, showParts, showTiles } from './panels.js'
import { createPlaceSearch } from './place-search.js'
import { follow } from './polling.js'
import { createPurgeQuestion } from './purge-question.js'
import { isTextName, text } from './texts.js'

/** @typedef {import('./contract.ts').Cell} Cell */
/** @typedef {import('./contract.ts').Status} Status */

const timeZone = document.documentElement.dataset.timeZone || 'UTC'
const figures = createFigures('en', timeZone)
/** @type {Status | undefined} */
let status
/** @type {import('./contract.ts').Point | undefined} */
let point
/** @type {Map<string, Cell & { at: string }>} each with the instant of its age */
const cells = new Map()
/** When the connection was lost, by the gateway's time in ms. @type {number | undefined} */
let lostAt
/** The listener's own sentence, where it gave one. */
let lostBecause = ''
let isConnected = false

const words = () => ({ text, figures, timeZone })
// The gateway's time, which goes on between two answers.
let heardAt = 0
const now = () =>
  status
    ? new Date(Date.parse(status.at) + (performance.now() - heardAt)).toISOString()
    : new Date().toISOString()
/** @param {Cell} cell @returns {number} seconds */
const ageOf = cell =>
  (cell.ageSeconds ?? 0) + Math.max(0, secondsBetween(cells.get(cell.id)?.at ?? now(), now()))

/** @param {unknown} error */
const onFault = error => {
  if (error instanceof TokenNeeded) void askForToken(false)
}
const question = createPurgeQuestion({ words, onFault })
const drawer = createCellDrawer({ words, ask: question.ask, onFault })
const map = createMap(
  byId('map'),
  {
    ageOf,
    onOpen: drawer.open,
    describe: cell =>
      [
        text('cellAt', figures.plain(cell.latitude), figures.plain(cell.longitude)),
        text(cell.state),
        ...(cell.ageSeconds === null ? [] : [text('ageOf', figures.duration(ageOf(cell)))]),
        cell.demand > 0 ? text('demandOf', figures.measured(cell.demand)) : text('noDemand'),
      ].join(' · '),
  },
  byId('map-cell'),
)
const table = createCellTable({ cells: () => cells.values(), ageOf, onOpen: drawer.open, words })
const charts = createCharts(words)
const keyPanel = createKeyPanel({ words, onFault })
createPlaceSearch({
  words,
  onChoose: cell => {
    map.choose(cell)
    byId('map').focus()
    drawer.open(cell)
  },
})

const countStates = () => {
  const counts = { fresh: 0, stale: 0, absent: 0, failed: 0 }
  for (const { state } of cells.values()) counts[state] += 1
  return counts
}

const showCells = () => {
  byId('map-empty').hidden = cells.size > 0 || !isConnected
  map.paint()
  table.update(cells)
  showLegend(byId('legend'), text, figures, countStates())
}

const showStatus = () => {
  if (!status) return
  setText(byId('version'), status.version)
  showAttention(status, words())
  showTiles(status, point, words())
  showBudget(status, words())
  showParts(status, words())
  showLists(status, words())
}

const showConnection = () => {
  const state = lostAt !== undefined ? 'lost' : isConnected ? 'live' : 'connecting'
  const shown = byId('connection')
  shown.dataset.state = state
  setText(
    byId('connection-text'),
    state === 'live'
      ? `${text('live')} ${figures.timeOfDay(Date.parse(now()), true)}`
      : text(state === 'lost' ? 'lostShort' : 'connecting'),
  )
  const lost = byId('lost')
  lost.hidden = lostAt === undefined
  setText(
    lost,
    lostAt === undefined
      ? ''
      : [text('lost', figures.timeOfDay(lostAt, true)), lostBecause].filter(part => part !== '').join(' '),
  )
  document.body.classList.toggle('is-lost', lostAt !== undefined)
}

const writeTexts = () => {
  for (const target of document.querySelectorAll(
    '[data-text], [data-label], [data-placeholder], [data-title]',
  )) {
    const {
      text: name = '',
      label = '',
      placeholder = '',
      title = '',
    } = /** @type {HTMLElement} */ (target).dataset
    if (isTextName(name)) setText(target, text(name))
    if (isTextName(label)) target.setAttribute('aria-label', text(label))
    if (isTextName(title)) target.setAttribute('title', text(title))
    if (isTextName(placeholder)) target.setAttribute('placeholder', text(placeholder))
  }
  byId('forget').hidden = token.get() === null
}

const showAll = () => {
  writeTexts()
  showConnection()
  showStatus()
  table.writeFilter()
  table.write()
  showCells()
  charts.draw()
  drawer.show()
  keyPanel.show()
}

/** @param {string} sentence for screen readers */
const announce = sentence => setText(byId('announcement'), sentence)

const theme = /** @type {HTMLSelectElement} */ (byId('theme'))
applyTheme(chosenTheme())
theme.value = chosenTheme()
theme.addEventListener('change', () => {
  const value = theme.value === 'light' || theme.value === 'dark' ? theme.value : 'system'
  keepTheme(value)
  applyTheme(value)
  charts.draw()
})
drawInOtherColours(() => charts.draw())

// The map stays below the bar, whose height follows the width.
new ResizeObserver(() => {
  document.documentElement.style.setProperty('--bar-height', `${byId('bar').offsetHeight}px`)
}).observe(byId('bar'))

/** @param {1 | -1} step */
const zoom = step => {
  const { isFirst, isLast } = map.zoom(step)
  byId('zoom-out').toggleAttribute('disabled', isFirst)
  byId('zoom-in').toggleAttribute('disabled', isLast)
}
byId('zoom-in').addEventListener('click', () => zoom(1))
byId('zoom-out').addEventListener('click', () => zoom(-1))

byId('purge-all').addEventListener('click', () =>
  question.ask({
    scope: 'all',
    title: 'purgeAllTitle',
    sentence: text('purgeAllText', figures.count(status?.cache.entries)),
    soft: 'purgeAllSoft',
    hard: 'purgeAllHard',
    onDone: kind => announce(text(kind === 'soft' ? 'softenedAll' : 'purgedAll')),
  }),
)

// The token.

const tokenDialog = /** @type {HTMLDialogElement} */ (byId('token'))
/** @param {boolean} isWrong the one that was given before */
const askForToken = async isWrong => {
  setText(byId('token-fault'), isWrong ? text('tokenWrong') : '')
  const value = /** @type {HTMLInputElement} */ (byId('token-value'))
  value.value = ''
  value.setAttribute('aria-invalid', String(isWrong))
  if (!tokenDialog.open) tokenDialog.showModal()
  await new Promise(resolve => byId('token-form').addEventListener('submit', resolve, { once: true }))
  token.set(value.value.trim())
  value.value = ''
  tokenDialog.close()
  byId('forget').hidden = false
}
// Without a token there is nothing behind the dialog.
tokenDialog.addEventListener('cancel', event => event.preventDefault())
byId('token-form').addEventListener('submit', event => event.preventDefault())
byId('forget').addEventListener('click', () => {
  token.forget()
  location.reload()
})

// What the listener answers.

byId('unloaded').remove()
setText(byId('zone'), timeZone)
showAll()
setInterval(() => {
  if (document.hidden) return
  showConnection()
  drawer.follow()
}, 1_000)

void follow({
  onConnected: () => {
    if (lostAt !== undefined) announce(text('back'))
    lostAt = undefined
    isConnected = true
    showConnection()
    void keyPanel.ask()
  },
  onLost: error => {
    isConnected = false
    lostBecause = error instanceof Refused ? error.message : ''
    lostAt ??= Date.parse(now())
    showConnection()
  },
  onTokenNeeded: askForToken,
  onStatus: next => {
    status = next
    heardAt = performance.now()
    charts.set(next.history)
    point = newestOf(next.history)
    showStatus()
    showConnection()
  },
  onCells: report => {
    const isAsMany = report.cells.length === cells.size
    cells.clear()
    for (const cell of report.cells) cells.set(cell.id, { ...cell, at: report.at })
    map.setAll(report)
    showCells()
    if (!isAsMany) table.write()
  },
})
