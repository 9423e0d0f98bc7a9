// The tiles, the budget, and the parts of the gateway.

import { secondsBetween, unknown } from '../../src/common/page/figures.js'
import { newestOf } from './history.js'
import {
  badge,
  circuitTones,
  circuitWord,
  factRows,
  failureLabel,
  figures,
  html,
  ownSentence,
  shortHash,
  usedOf,
} from './view.js'

/** @typedef {import('./contract.ts').Status} Status */

/** @param {{ status: Status }} props */
export const Tiles = ({ status: { instances, history } }) => {
  const { requestsPerSecond, hitShare, p99, errorsPerSecond } = newestOf(history)
  const hits =
    hitShare.memory === null && hitShare.shared === null
      ? null
      : (hitShare.memory ?? 0) + (hitShare.shared ?? 0)
  const ready = instances.filter(({ phase }) => phase === 'ready').length
  return factRows([
    ['Requests per second', figures.measured(requestsPerSecond)],
    ['Cache hit rate', figures.share(hits)],
    ['Latency p99', figures.latency(p99)],
    ['Errors per second', figures.measured(errorsPerSecond)],
    ['Instances', `${figures.count(ready)}/${figures.count(instances.length)}`],
  ])
}

/** A limit of the provider. A meter's colour follows its tone. @param {{ window: Status['budget']['windows'][number], closure: Status['budget']['closure'], at: string }} props */
const Gauge = ({ window: { name, limit, used, resetsAt, exhaustedAt }, closure, at }) => {
  const isSpent = used >= limit
  const tone = isSpent || closure ? 'bad' : exhaustedAt ? 'warn' : 'good'
  const amount = usedOf(figures.count(used), figures.count(limit))
  const forecast = closure
    ? `closed until ${figures.instant(closure.until, at)}`
    : isSpent
      ? 'used up'
      : exhaustedAt
        ? `used up ${figures.instant(exhaustedAt, at)}`
        : 'lasts until reset'
  const reset = `resets ${figures.instant(resetsAt, at)}`
  const max = Math.max(1, limit)
  return html`<div class="gauge">
    <div class="row between"><h3>${name}</h3><b>${amount}</b></div>
    <meter aria-label=${name} aria-valuetext="${amount}; ${reset}; ${forecast}"
      min="0" max=${max} value=${limit > 0 ? Math.min(used, limit) : 1}
      optimum="0" low=${tone === 'good' ? max : max / 1e6} high=${tone === 'bad' ? max / 1e5 : max}></meter>
    <div class="row between"><span class="note">${reset}</span>${badge(forecast, tone)}</div>
  </div>`
}

/** @param {{ status: Status }} props */
export const Budget = ({ status: { budget, at } }) => {
  const { windows, closure, shared, demandPerDay, stretch } = budget
  return html`<section class="panel" aria-labelledby="budget-title">
    <header class="row between">
      <h2 id="budget-title">Provider budget</h2>
      <span class="note">${shared ? 'shared by the fleet' : 'counted by each instance'}</span>
    </header>
    <div id="budget" class="cols">
      ${windows.map(window => html`<${Gauge} key=${window.name} window=${window} closure=${closure} at=${at} />`)}
      ${windows.length === 0 && html`<p class="note">No provider limits are configured.</p>`}
    </div>
    <dl id="budget-facts" class="facts cols">
      ${factRows([
        ['Expected demand per day', figures.count(demandPerDay)],
        [
          'Freshness extended by',
          stretch === null ? unknown : stretch <= 1 ? 'none' : `×${figures.measured(stretch)}`,
        ],
      ])}
    </dl>
  </section>`
}

/** @param {{ status: Status }} props */
export const Parts = ({
  status: { provider, upstreams, budget, store, catalogue, certificate, run, cache, config, at },
}) => {
  /** @param {string | null | undefined} iso */
  const instant = iso => figures.instant(iso, at)
  const failure = provider.lastFailure
  /** @param {string | null} fault */
  const inForce = fault => badge(fault ? 'update rejected' : 'in use', fault ? 'warn' : 'good')
  /** @param {string | null} iso */
  const sooner = iso => (iso !== null && iso <= at ? 'now' : instant(iso))
  /** @typedef {import('./view.js').Fact} Fact */
  /** @type {[id: string, title: string, state: unknown, facts: readonly Fact[], more?: unknown][]} */
  const parts = [
    [
      'provider',
      'Provider',
      budget.closure && provider.circuit === 'closed'
        ? badge(`closed until ${instant(budget.closure.until)}`, 'bad')
        : badge(`Circuit: ${circuitWord(provider.circuit)}`, circuitTones[provider.circuit]),
      [
        ['Last success', instant(provider.lastSuccessAt)],
        ['First error if it stays down', sooner(provider.firstErrorAt)],
        ['Last failure', failure ? instant(failure.at) : 'none'],
        ...upstreams.map(
          ({ name, inUse, circuit }) =>
            /** @type {Fact} */ ([`Upstream ${name}`, inUse ? 'in use' : circuitWord(circuit ?? 'closed')]),
        ),
      ],
      failure && html`<p>${failureLabel(failure.code)} ${ownSentence(failure.message)}</p>`,
    ],
    [
      'store',
      'Store',
      badge(
        `${store.kind === 'redis' ? 'Redis' : store.kind}: ${store.isUp ? 'up' : 'down'}`,
        store.isUp ? 'good' : 'bad',
      ),
      [
        ['Round trip', figures.latency(store.latencyMs === null ? null : store.latencyMs / 1000)],
        ['Used', figures.bytes(store.usedBytes)],
      ],
    ],
    [
      'run',
      'Model run',
      null,
      run
        ? [
            ['Started', instant(run.initialisedAt)],
            ['Available since', instant(run.availableAt)],
            ['Next expected', instant(run.nextExpectedAt)],
          ]
        : [],
      !run && html`<p class="note">Model runs are not tracked, or no run is known yet.</p>`,
    ],
    [
      'cache',
      'Cache',
      null,
      [
        ['Timelines in memory', figures.count(cache.entries)],
        ['Memory', usedOf(figures.bytes(cache.bytes), figures.bytes(cache.maxBytes))],
        ['Cells in demand', figures.count(cache.wantedCells)],
      ],
    ],
    [
      'catalogue',
      'Catalogue',
      inForce(catalogue.fault),
      [
        ['Places', figures.count(catalogue.places)],
        ['Checksum', html`<code>${shortHash(catalogue.checksum)}</code>`, catalogue.checksum],
      ],
    ],
    [
      'configuration',
      'Configuration',
      inForce(config.fault),
      [
        ['Hash', html`<code>${shortHash(config.hash)}</code>`, config.hash],
        ['Applied', instant(config.appliedAt)],
        certificate !== null && [
          'Certificate expires in',
          figures.duration(secondsBetween(at, certificate.expiresAt)),
          certificate.expiresAt,
        ],
      ],
    ],
  ]
  return parts.map(
    ([id, title, state, facts, more]) => html`
      <section key=${id} class="panel" aria-labelledby="part-${id}" data-part=${id}>
        <header class="row between"><h2 id="part-${id}">${title}</h2>${state}</header>
        ${facts.length > 0 && html`<dl class="facts">${factRows(facts)}</dl>`}
        ${more}
      </section>`,
  )
}
