// The tiles, the budget and the parts of the gateway. Each function shows one of them from the status and remembers nothing.

import { secondsBetween, unknown } from '../../src/common/page/figures.js'
import { byId, element, setChildren, setText } from './dom.js'
import { badge, circuitTones, factRows, failureLabel, ownSentence, shortHash } from './labels.js'

/** @typedef {import('./contract.ts').Status} Status */
/** @typedef {import('./texts.js').TextName} TextName */
/** @typedef {import('./labels.js').Words} Words */

/** @param {Status} status @param {import('./contract.ts').Point | undefined} point @param {Words} words */
export const showTiles = ({ instances }, point, { text, figures }) => {
  const shares = point?.hitShare
  const hits =
    shares?.memory === null && shares.shared === null
      ? null
      : shares && (shares.memory ?? 0) + (shares.shared ?? 0)
  const ready = instances.filter(({ phase }) => phase === 'ready').length
  /** @type {[TextName, string][]} */
  const tiles = [
    ['rate', figures.measured(point?.requestsPerSecond)],
    ['hitShare', figures.share(hits)],
    ['latencyP99', figures.latency(point?.p99)],
    ['errors', figures.measured(point?.errorsPerSecond)],
    ['instances', `${figures.count(ready)}/${figures.count(instances.length)}`],
  ]
  setChildren(
    byId('tiles'),
    tiles.map(([name, value]) => element('div', {}, element('dt', {}, text(name)), element('dd', {}, value))),
  )
}

/** @param {Status} status @param {Words} words */
export const showBudget = ({ budget, at }, words) => {
  const { text, figures } = words
  setText(byId('budget-note'), text(budget.shared ? 'countedTogether' : 'countedApart'))
  const host = byId('budget')
  const gauges = budget.windows.map(({ name, limit, used, resetsAt, exhaustedAt }) => {
    const share = Math.min(1, limit > 0 ? used / limit : 1)
    const tone = share >= 1 || budget.closure ? 'bad' : exhaustedAt ? 'warn' : 'good'
    const amount = text('usedOf', figures.count(used), figures.count(limit))
    const forecast = budget.closure
      ? text('closedUntil', figures.instant(budget.closure.until, at))
      : share >= 1
        ? text('usedUp')
        : exhaustedAt
          ? text('exhaustedAt', figures.instant(exhaustedAt, at))
          : text('lasts')
    const reset = text('resetsAt', figures.instant(resetsAt, at))
    const title = text(name)
    return {
      share,
      row: element(
        'div',
        { class: `gauge ${tone}` },
        element('h3', {}, title),
        element('b', {}, amount),
        element(
          'div',
          {
            class: 'track',
            role: 'meter',
            'aria-label': title,
            'aria-valuemin': 0,
            'aria-valuemax': limit,
            'aria-valuenow': Math.min(used, limit),
            'aria-valuetext': `${amount}; ${reset}; ${forecast}`,
          },
          element('span', { 'data-share': share.toFixed(4) }),
        ),
        element('span', { class: 'note' }, reset),
        badge(forecast, tone),
      ),
    }
  })
  setChildren(
    host,
    gauges.length > 0 ? gauges.map(({ row }) => row) : [element('p', { class: 'empty' }, text('noLimit'))],
  )
  // A style attribute is not allowed by the page's policy, a property set by script is. Set on what is shown.
  for (const bar of host.querySelectorAll('[data-share]')) {
    const fill = /** @type {HTMLElement} */ (bar)
    fill.style.width = `${Number(fill.dataset.share) * 100}%`
  }
  setChildren(
    byId('budget-facts'),
    factRows([
      [text('demandPerDay'), figures.count(budget.demandPerDay)],
      [
        text('stretch'),
        budget.stretch === null
          ? unknown
          : budget.stretch <= 1
            ? text('noStretch')
            : `×${figures.measured(budget.stretch)}`,
      ],
    ]),
  )
}

/** @param {Status} status @param {Words} words */
export const showParts = (
  { provider, upstreams, budget, store, catalogue, certificate, run, cache, config, at },
  words,
) => {
  const { text, figures } = words
  /** @param {string | null | undefined} iso */
  const instant = iso => figures.instant(iso, at)
  const failure = provider.lastFailure
  /** @param {string | null} fault */
  const inForce = fault => badge(text(fault ? 'refused' : 'fine'), fault ? 'warn' : 'good')
  /** A row whose label is for screen readers alone. @param {string} kind @param {string} label @param {...(Node | string)} value */
  const wholeRow = (kind, label, ...value) => [
    element('div', { class: kind }, element('dt', { class: 'unseen' }, label), element('dd', {}, ...value)),
  ]
  /** @param {string | null} iso */
  const sooner = iso => (iso !== null && iso <= at ? text('atOnce') : instant(iso))
  /** @type {[title: TextName, state: HTMLElement | null, rows: HTMLElement[]][]} */
  const parts = [
    [
      'provider',
      budget.closure && provider.circuit === 'closed'
        ? badge(text('closedUntil', instant(budget.closure.until)), 'bad')
        : badge(`${text('circuit')}: ${text(provider.circuit)}`, circuitTones[provider.circuit]),
      [
        ...factRows([
          [text('lastSuccess'), instant(provider.lastSuccessAt)],
          [text('firstErrorAt'), sooner(provider.firstErrorAt)],
          [text('lastFailure'), failure ? instant(failure.at) : text('none')],
        ]),
        ...(failure
          ? wholeRow(
              'failure',
              text('lastFailure'),
              failureLabel(failure.code, words),
              ' ',
              ownSentence(failure.message),
            )
          : []),
        ...factRows(
          upstreams.map(
            ({ name, inUse, circuit }) =>
              /** @type {const} */ ([
                text('upstreamNamed', name),
                text(inUse ? 'inUse' : (circuit ?? 'closed')),
              ]),
          ),
        ),
      ],
    ],
    [
      'store',
      badge(`${text(store.kind)}: ${text(store.isUp ? 'up' : 'away')}`, store.isUp ? 'good' : 'bad'),
      factRows([
        [text('latencyOfStore'), figures.latency(store.latencyMs === null ? null : store.latencyMs / 1000)],
        [text('usedMemory'), figures.bytes(store.usedBytes)],
      ]),
    ],
    [
      'run',
      null,
      run
        ? factRows([
            [text('initialised'), instant(run.initialisedAt)],
            [text('available'), instant(run.availableAt)],
            [text('nextExpected'), instant(run.nextExpectedAt)],
          ])
        : wholeRow('empty', text('run'), text('noRun')),
    ],
    [
      'cache',
      null,
      factRows([
        [text('entries'), figures.count(cache.entries)],
        [text('memoryUsed'), text('usedOf', figures.bytes(cache.bytes), figures.bytes(cache.maxBytes))],
        [text('wanted'), figures.count(cache.wantedCells)],
      ]),
    ],
    [
      'catalogue',
      inForce(catalogue.fault),
      factRows([
        [text('places'), figures.count(catalogue.places)],
        [text('checksum'), element('code', {}, shortHash(catalogue.checksum)), catalogue.checksum],
      ]),
    ],
    [
      'configuration',
      inForce(config.fault),
      factRows([
        [text('hash'), element('code', {}, shortHash(config.hash)), config.hash],
        [text('appliedAt'), instant(config.appliedAt)],
        certificate !== null && [
          text('certificateLasts'),
          figures.duration(secondsBetween(at, certificate.expiresAt)),
          certificate.expiresAt,
        ],
      ]),
    ],
  ]
  setChildren(
    byId('parts'),
    parts.map(([title, state, rows]) =>
      element(
        'section',
        { class: 'panel part', 'aria-labelledby': `part-${title}`, 'data-part': title },
        element('header', {}, element('h2', { id: `part-${title}` }, text(title)), state),
        element('dl', { class: 'facts' }, ...rows),
      ),
    ),
  )
}
