// What panels share: templates, figures and labels. Text is always set as text, never as markup.

import { createFigures, unknown } from '../../src/common/page/figures.js'
import htm from './htm.js'
import { h } from './preact.js'

/** @typedef {import('./preact.js').ComponentChildren} Children */
/** @typedef {'good' | 'warn' | 'bad'} Tone */

/** @typedef {import('./preact.js').VNode} VNode */

/** @type {(strings: TemplateStringsArray, ...values: unknown[]) => VNode} */
export const html = /** @type {any} */ (htm.bind(h))

export const timeZone = document.documentElement.dataset.timeZone || 'UTC'
export const figures = createFigures('en', timeZone)

/** @param {unknown} error */
export const messageOf = error => (error instanceof Error ? error.message : String(error))

/** Of a circuit breaker in each of its states. */
export const circuitTones = /** @type {const} */ ({ closed: 'good', 'half-open': 'warn', open: 'bad' })
/** @param {string} circuit */
export const circuitWord = circuit => circuit.replace('-', ' ')

/** A word with a sign, so that its colour is not all it has. @param {Children} word @param {Tone} tone */
export const badge = (word, tone) => html`<span class="badge ${tone}">${word}</span>`

/** A sentence of the gateway itself. @param {string} sentence */
export const ownSentence = sentence => html`<small class="detail">${sentence}</small>`

/** @typedef {readonly [label: string, value: Children, title?: string | null | undefined] | undefined | false} Fact */

/** @param {readonly Fact[]} facts */
export const factRows = facts =>
  facts.map(fact => fact && html`<div><dt>${fact[0]}</dt><dd title=${fact[2]}>${fact[1]}</dd></div>`)

/** @param {readonly Fact[]} facts */
export const factList = facts => html`<dl class="facts">${factRows(facts)}</dl>`

/** What is used, of how much. @param {string} used @param {string} limit */
export const usedOf = (used, limit) => `${used} / ${limit}`

/** @param {import('./contract.ts').Cell | { latitude: number, longitude: number }} cell */
export const cellName = ({ latitude, longitude }) =>
  `${figures.plain(latitude)}° N ${figures.plain(longitude)}° E`

/** The part of an id that distinguishes instances. @param {string} id */
export const shortId = id => id.slice(0, 8)

/** The beginning of a checksum. @param {string | null} hash */
export const shortHash = hash => (hash === null ? unknown : hash.replace(/^sha256:/, '').slice(0, 8))

/** @param {{ name_en: string, name_bn: string }} place */
export const placeName = ({ name_en, name_bn }) => name_en || name_bn

/** The name of a place, and what it is. @param {import('./contract.ts').Place} place */
export const placeLabel = place => html`<span>${placeName(place)} <small>${place.type}</small></span>`

/** @type {Readonly<Record<string, string>>} */
const failures = {
  provider_unreachable: "the provider can't be reached",
  provider_not_sent: 'this gateway could not send the request',
  provider_broke_off: 'the connection to the provider broke off',
  provider_timeout: 'the provider did not answer in time',
  provider_failing: 'the provider answered with a server error',
  provider_overloaded: 'the provider says that it is overloaded',
  provider_refused: 'the provider refuses this point',
  provider_too_much: 'the provider says that the request is for too much data',
  provider_denied: 'the provider refuses the key, plan, host or path',
  provider_limited: 'a limit of the provider is used up',
  key_share_used_up: 'the share of one key in the limits of the provider is used up',
  provider_busy: 'the provider has too many requests at the same time',
  provider_cut_off: 'the response of the provider was incomplete',
  provider_garbled: 'the response of the provider was rejected as invalid',
  provider_circuit_open: 'the provider circuit is open, so nothing was sent',
  waited_too_long: 'the load took too long',
  timeline_exhausted: 'the cached timeline does not reach the present',
  store_unavailable: 'the store is unavailable',
  internal: 'an internal error of the gateway',
}

/** A failure as a sentence with its code. @param {string} code */
export const failureLabel = code =>
  html`<span>${failures[code] ?? 'another error'} <small><code>${code}</code></small></span>`

/** @typedef {[title: string, kind?: 'number']} Column */

/**
 * Rows as a table, or why there are none.
 * @param {string} caption @param {string} empty
 * @param {readonly Column[]} columns @param {readonly (readonly Children[])[]} rows
 */
export const table = (caption, empty, columns, rows) => {
  if (rows.length === 0) return html`<p class="note">${empty}</p>`
  const heads = columns.map(([title, kind]) => html`<th scope="col" class=${kind}>${title}</th>`)
  /** @param {readonly Children[]} cells */
  const row = ([first, ...others]) =>
    html`<tr>
      <th scope="row" class=${columns[0]?.[1]}>${first}</th>
      ${others.map((cell, i) => html`<td class=${columns[i + 1]?.[1]}>${cell}</td>`)}
    </tr>`
  return html`<table class="figures">
    <caption class="unseen">${caption}</caption>
    <thead><tr>${heads}</tr></thead>
    <tbody>${rows.map(row)}</tbody>
  </table>`
}
