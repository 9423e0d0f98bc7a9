// The lists of the status as tables: instances, the most requested places and keys, and keys near their limit.

import { unknown } from '../../src/common/page/figures.js'
import {
  badge,
  circuitTones,
  circuitWord,
  figures,
  html,
  placeLabel,
  shortHash,
  shortId,
  table,
  usedOf,
} from './view.js'

/** @typedef {import('./contract.ts').Status} Status */

/** The circuit of an instance, and below it each outage that it sees, and its errors of late. @param {Status['instances'][number]} one @param {string} at */
const circuitOf = ({ circuit, outages, recentErrors }, at) => html`<span class="stack">
  ${circuit === null ? unknown : badge(circuitWord(circuit), circuitTones[circuit])}
  ${(outages ?? []).map(({ outage, since }) =>
    badge(`${outage === 'provider' ? 'Provider' : 'Store'} out since ${figures.instant(since, at)}`, 'bad'),
  )}
  ${recentErrors !== null && html`<small>errors in 5 min: ${figures.count(recentErrors)}</small>`}
</span>`

/** @param {{ status: Status }} props */
export const Instances = ({ status: { instances, config, at } }) =>
  table(
    'Instances',
    // There is at least the one that answers.
    '',
    [
      ['Instance'],
      ['Id'],
      ['Phase'],
      ['Circuit'],
      ['Requests/s', 'number'],
      ['Cache hit rate', 'number'],
      ['Memory', 'number'],
      ['Started', 'number'],
      ['Version'],
      ['Configuration'],
    ],
    instances.map(one => [
      html`${one.host ?? one.id}${one.pid !== null && ` · ${one.pid}`}${one.isSelf && html` <em class="badge note">this one</em>`}`,
      html`<code title=${one.id}>${shortId(one.id)}</code>`,
      badge(one.phase ?? unknown, one.phase === 'ready' ? 'good' : 'warn'),
      circuitOf(one, at),
      figures.measured(one.requestsPerSecond),
      figures.share(one.hitShare),
      figures.bytes(one.memoryBytes),
      figures.instant(one.startedAt, at),
      one.version ?? unknown,
      html`<code title=${one.configHash}>${shortHash(one.configHash)}</code> ${config.differs.includes(one.id) && badge('differs', 'warn')}`,
    ]),
  )

/** @param {{ status: Status }} props */
export const TopLists = ({ status: { top, keysNearLimit } }) => {
  const places = table(
    'Top places',
    'No requests yet.',
    [['Place'], ['Recent requests', 'number']],
    top.places.map(place => [placeLabel(place), figures.count(place.requests)]),
  )
  const keys = table(
    'Top keys',
    'No requests yet.',
    [['Key'], ['Requests today', 'number'], ['Cells loaded', 'number']],
    top.keys.map(({ keyId, requests, cellsLoaded, shareOfDay }) => [
      html`<code>${keyId}</code>`,
      figures.count(requests),
      html`${figures.count(cellsLoaded)}${
        cellsLoaded > 0 &&
        shareOfDay !== null &&
        html`<small class="detail">${figures.share(shareOfDay)} of the day</small>`
      }`,
    ]),
  )
  const near = table(
    'Keys near their limit',
    keysNearLimit
      ? 'No key is near its limit.'
      : 'Not known: there are too many keys, or the store does not respond.',
    [['Key'], ['Subscriber'], ['Used', 'number']],
    (keysNearLimit ?? []).map(({ keyId, subscriber, tier, used, limit }) => [
      html`<code title=${tier}>${keyId}</code>`,
      subscriber ?? unknown,
      html`${usedOf(figures.count(used), figures.count(limit))}<small class="detail">${figures.share(limit > 0 ? used / limit : 1)}</small>`,
    ]),
  )
  const hint =
    'Cells loaded for each key by this gateway since midnight UTC, and their share of the daily budget.'
  return [
    ['top-places', 'Top places', places],
    ['top-keys', 'Top keys', keys, html`<small class="detail">${hint}</small>`],
    ['near-limit', 'Keys near their limit', near],
  ].map(
    ([id, title, list, more]) => html`
      <section key=${id} class="panel" aria-labelledby="${id}-title">
        <header><h2 id="${id}-title">${title}</h2></header>
        <div id=${id} class="scroll">${list}</div>
        ${more}
      </section>`,
  )
}
