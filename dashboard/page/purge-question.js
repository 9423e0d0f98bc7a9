// The question before something is removed, before all is purged, and before an area is: what either does, and what it costs. A purge
// marks stale; only the button that says so removes.

import { byId, element, setChildren, setText } from './dom.js'
import { factList } from './labels.js'
import { order } from './listener.js'

/** @typedef {import('./texts.js').TextName} TextName */
/** @typedef {import('./contract.ts').Price} Price */

/**
 * @typedef {object} Question
 * @property {string} [scope] as the listener takes it
 * @property {readonly { scope: string, label: string }[]} [areas] to choose one of in place of the scope
 * @property {TextName} title
 * @property {string} sentence
 * @property {TextName} soft on the button
 * @property {TextName} hard on the button
 * @property {(kind: 'soft' | 'hard') => void} onDone
 */

/** @param {object} parts @param {() => import('./labels.js').Words} parts.words @param {(error: unknown) => void} parts.onFault */
export const createPurgeQuestion = ({ words, onFault }) => {
  const dialog = /** @type {HTMLDialogElement} */ (byId('purge-question'))
  const [title, sentence, result] = ['title', 'text', 'result'].map(name => byId(`purge-${name}`))
  const [cancel, soft, hard] = ['cancel', 'soft', 'hard'].map(name => byId(`purge-${name}`))
  if (!title || !sentence || !result || !cancel || !soft || !hard) throw new Error('no dialog')
  const choice = /** @type {HTMLSelectElement} */ (byId('purge-areas'))
  const price = byId('purge-price')
  /** @type {Question | undefined} */
  let asked
  let prices = 0

  const scopeOf = () => (asked?.areas ? { scope: choice.value, area: true } : { scope: asked?.scope })
  /** @param {unknown} error */
  const fail = error => {
    setText(result, words().text('failedOrder', error instanceof Error ? error.message : String(error)))
    onFault(error)
  }

  const showPrice = async () => {
    prices += 1
    const own = prices
    setChildren(price, [element('p', { class: 'note' }, words().text('readingPrice'))])
    try {
      const found = await Promise.all(
        [false, true].map(hard => order('/cache/purge', { ...scopeOf(), hard, dryRun: true })),
      )
      // Another question may have been asked meanwhile, or another area chosen.
      if (own === prices) setChildren(price, [priceFacts(found[0], found[1], words())])
    } catch (error) {
      if (own !== prices) return
      setChildren(price, [])
      fail(error)
    }
  }

  /** @param {'soft' | 'hard'} kind */
  const purge = async kind => {
    if (!asked) return
    const { onDone } = asked
    setText(result, words().text('working'))
    try {
      await order('/cache/purge', { ...scopeOf(), hard: kind === 'hard' })
      onDone(kind)
      dialog.close()
    } catch (error) {
      fail(error)
    }
  }
  cancel.addEventListener('click', () => dialog.close())
  soft.addEventListener('click', () => purge('soft'))
  hard.addEventListener('click', () => purge('hard'))
  choice.addEventListener('change', showPrice)

  return {
    /** @param {Question} question */
    ask: question => {
      const { text } = words()
      asked = question
      setText(title, text(question.title))
      setText(sentence, question.sentence)
      setText(soft, text(question.soft))
      setText(hard, text(question.hard))
      setText(result, '')
      byId('purge-area').hidden = question.areas === undefined
      choice.replaceChildren(
        ...(question.areas ?? []).map(({ scope, label }) => element('option', { value: scope }, label)),
      )
      dialog.showModal()
      cancel.focus()
      void showPrice()
    },
  }
}

/** The same figures as `abohawa cache purge --dry-run`. @param {Price} soft @param {Price} hard @param {import('./labels.js').Words} words */
const priceFacts = (soft, hard, { text, figures }) => {
  const { count } = figures
  const { cells, cached, weight, oneKeyNow, reloadedAt, fallbacks, at } = soft
  /** @param {Price} of @param {'leftStale' | 'leftEmpty'} left */
  const roomOf = ({ fitsNow, refusedNow }, left) =>
    refusedNow === 0 ? text('roomForAll') : text(left, count(fitsNow), count(refusedNow))
  if (cached === 0) return factList([[text('cachedNow'), text('shareOf', count(cached), count(cells))]])
  return factList([
    [text('cachedNow'), text('shareOf', count(cached), count(cells))],
    [text('costsAtMost'), text('weightIfAll', count(weight))],
    fallbacks > 0 && [text('budget'), text('firstUpstream')],
    [text('roomPurged'), roomOf(soft, 'leftStale')],
    [text('roomRemoved'), roomOf(hard, 'leftEmpty')],
    oneKeyNow < cached && [text('roomOfKey'), text('oneKey', count(oneKeyNow))],
    [
      text('allLoaded'),
      reloadedAt === null
        ? text('neverLoaded')
        : reloadedAt <= at
          ? text('atOnce')
          : text('atEarliest', figures.instant(reloadedAt, at, true)),
    ],
  ])
}
