// The labels that panels, lists and the cell drawer share: badges, rows of facts, failures, places and short ids.

import { unknown } from '../../src/common/page/figures.js'
import { element } from './dom.js'
import { isTextName } from './texts.js'

/** @typedef {{ text: import('./texts.js').Texts, figures: import('../../src/common/page/figures.js').Figures }} Words */
/** @typedef {'good' | 'warn' | 'bad'} Tone */

/** @type {Record<Tone, string>} */
export const signs = { good: '✓', warn: '!', bad: '✕' }

/** Of a circuit breaker in each of its states. */
export const circuitTones = /** @type {const} */ ({ closed: 'good', 'half-open': 'warn', open: 'bad' })

/** A word with a sign, so that its colour is not all it has. @param {string} word @param {Tone} tone */
export const badge = (word, tone) =>
  element('span', { class: `badge ${tone}` }, element('i', { 'aria-hidden': 'true' }, signs[tone]), word)

/** @param {readonly (readonly [label: string, value: string | Node, title?: string | null | undefined] | undefined | false)[]} facts */
export const factRows = facts =>
  facts.flatMap(fact => {
    if (!fact) return []
    const [label, value, title] = fact
    return [element('div', {}, element('dt', {}, label), element('dd', { title }, value))]
  })

/** @param {Parameters<typeof factRows>[0]} facts */
export const factList = facts => element('dl', { class: 'facts' }, ...factRows(facts))

/** A failure as a sentence with its code. @param {string} code @param {Words} words */
export const failureLabel = (code, { text }) => {
  const name = `code_${code}`
  return element(
    'span',
    {},
    text(isTextName(name) ? name : 'codeUnknown'),
    ' ',
    element('small', {}, element('code', {}, code)),
  )
}

/** A sentence of the gateway itself. @param {string} sentence */
export const ownSentence = sentence => element('small', { class: 'detail' }, sentence)

/** The part of an id that distinguishes instances. @param {string} id */
export const shortId = id => id.slice(0, 8)

/** The beginning of a checksum. @param {string | null} hash */
export const shortHash = hash => (hash === null ? unknown : hash.replace(/^sha256:/, '').slice(0, 8))

/**
 * The name of a place, and what it is. @param {import('./contract.ts').Place} place @param {Words} words
 * @returns {[name: string, type: string]}
 */
export const placeText = ({ type, name_en, name_bn }, { text }) => [
  name_en || name_bn,
  isTextName(type) ? text(type) : type,
]

/** The same as an element. @param {import('./contract.ts').Place} place @param {Words} words */
export const placeLabel = (place, words) => {
  const [name, type] = placeText(place, words)
  return element('span', {}, name, ' ', element('small', {}, type))
}
