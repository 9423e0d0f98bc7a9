// The panel of keys: those with most requests today, or those that the search finds; who holds each, and what it did on this gateway
// by hour. Asks the listener now and then, and only with a token: without one it gives no names of subscribers.

import { unknown } from '../../src/common/page/figures.js'
import { byId, drawn, element, setChildren, setText } from './dom.js'
import { ownSentence } from './labels.js'
import { Refused, read, token } from './listener.js'
import { showTable } from './lists.js'

/** @typedef {import('./contract.ts').KeyPanel} Report */
/** @typedef {import('./contract.ts').PanelKey} Key */
/** @typedef {import('./labels.js').Words} Words */

const everyMs = 10_000
const pauseMs = 250
const mostCodes = 3
const [bar, height] = [4, 22]

/** @param {{ words: () => Words, onFault: (error: unknown) => void }} parts */
export const createKeyPanel = ({ words, onFault }) => {
  const input = /** @type {HTMLInputElement} */ (byId('key-search'))
  /** @type {Report | undefined} */
  let report
  let fault = ''
  let asked = 0

  /** The requests of each hour as bars. @param {readonly number[]} hours @param {Words} words */
  const bars = (hours, { text, figures }) => {
    const most = Math.max(...hours)
    const label = text('hoursSummary', figures.count(hours.at(-1)), figures.count(most))
    const [width, y] = [bar * hours.length, height]
    return drawn(
      'svg',
      { class: 'hours', role: 'img', 'aria-label': label, viewBox: `0 0 ${width} ${y}`, width, height },
      ...hours.map((count, i) => {
        const tall = count === 0 ? 1 : Math.max(2, Math.round((count / most) * height))
        return drawn('rect', { x: i * bar, y: height - tall, width: bar - 1, height: tall })
      }),
    )
  }
  /** The most frequent codes, then how many others there were. @param {Readonly<Record<string, number>>} refusals @param {Words} words */
  const codes = (refusals, { text, figures }) => {
    const all = Object.entries(refusals).sort(([, one], [, other]) => other - one)
    if (all.length === 0) return text('none')
    const rest = all.slice(mostCodes).reduce((sum, [, count]) => sum + count, 0)
    return element(
      'span',
      { class: 'stack' },
      ...all
        .slice(0, mostCodes)
        .map(([code, count]) => element('span', {}, element('code', {}, code), ` ${figures.count(count)}`)),
      rest > 0 && element('small', {}, text('otherCodes', figures.count(rest))),
    )
  }

  const show = () => {
    const { text, figures } = words()
    const hasToken = token.get() !== null
    input.disabled = !hasToken
    setChildren(byId('key-note'), [
      element('span', {}, text(hasToken ? 'keysHint' : 'keysNeedToken')),
      ...(fault === '' ? [] : [element('span', {}, ` ${text('keysFailed')} `, ownSentence(fault))]),
      ...(report && !report.isWhole ? [element('span', {}, ` ${text('keysPartly')}`)] : []),
    ])
    setText(byId('key-count'), report ? text('keysShown', figures.count(report.keys.length)) : '')
    const at = report?.at ?? ''
    showTable(
      'keys',
      text('keys'),
      hasToken && report ? text(input.value.trim() === '' ? 'noRequests' : 'keysNotFound') : '',
      [
        [text('key')],
        [text('subscriber')],
        [text('tier')],
        [text('usedToday'), 'number'],
        [text('byHour')],
        [text('errorsToday')],
        [text('lastUsed'), 'number'],
      ],
      (report?.keys ?? []).map(({ keyId, subscriber, tier, used, limit, here }) => [
        element('code', {}, keyId),
        subscriber ?? unknown,
        tier ?? unknown,
        limit === null ? figures.count(used) : text('usedOf', figures.count(used), figures.count(limit)),
        here ? bars(here.hours, words()) : unknown,
        here ? codes(here.refusals, words()) : unknown,
        figures.instant(here?.lastUsedAt, at),
      ]),
    )
  }

  const ask = async () => {
    if (token.get() === null) return
    asked += 1
    const mine = asked
    try {
      const found = await read(`/usage/keys?q=${encodeURIComponent(input.value.trim())}`)
      if (mine !== asked) return
      report = found
      fault = ''
    } catch (error) {
      if (mine !== asked) return
      if (error instanceof Refused) fault = error.message
      else onFault(error)
    }
    show()
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let waiting
  input.addEventListener('input', () => {
    clearTimeout(waiting)
    waiting = setTimeout(() => void ask(), pauseMs)
  })
  setInterval(() => {
    if (!document.hidden) void ask()
  }, everyMs)

  return { show, ask }
}
