// Everything of the status but the charts and the map: what needs attention, the tiles, the budget, the parts of the gateway
// and the lists. Each function shows one of them; all of it is text of the status and nothing is remembered.

import { secondsBetween, unknown } from '../../../page/figures.js'
import { byId, element, setChildren, setText } from './dom.js'
import { isTextName } from './texts.js'

/** @typedef {import('./contract.ts').Status} Status */
/** @typedef {import('./texts.js').TextName} TextName */
/** @typedef {{ text: import('./texts.js').Texts, figures: import('../../../page/figures.js').Figures }} Words */
/** @typedef {'good' | 'warn' | 'bad'} Tone */

/** @type {Record<Tone, string>} */
const signs = { good: '✓', warn: '!', bad: '✕' }

/** A word with a sign, so that its colour is not all it has. @param {string} word @param {Tone} tone */
const badge = (word, tone) =>
  element('span', { class: `badge ${tone}` }, element('i', { 'aria-hidden': 'true' }, signs[tone]), word)

/** @param {readonly (readonly [label: string, value: string | Node, title?: string | null | undefined] | undefined | false)[]} facts */
export const factRows = facts =>
  facts.flatMap(fact => {
    if (!fact) return []
    const [label, value, title] = fact
    return [element('div', {}, element('dt', {}, label), element('dd', { title }, value))]
  })

/** @type {Record<NonNullable<Status['certificate']>['renewal'], Tone>} */
const certificateTones = { valid: 'good', due: 'warn', urgent: 'bad', expired: 'bad' }

/** What failed, as a sentence with its code. @param {string} code @param {Words} words */
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

/** What the gateway itself says, which is English in both languages. @param {string} sentence */
export const ownSentence = sentence => element('small', { lang: 'en', class: 'detail' }, sentence)

/** The part of an id that distinguishes instances. @param {string} id */
const shortId = id => id.slice(0, 8)

/** Why nothing can be loaded from the provider now; undefined where it can. @param {Status} status @param {Words} words */
export const obstacleTo = ({ provider, budget, instances, at }, { text, figures }) => {
  if (provider.circuit !== 'closed') return text('obstacleCircuit')
  if (budget.closure) return text('obstacleLimit', figures.instant(budget.closure.until, at))
  if (instances.some(({ providerOutage }) => providerOutage !== null)) return text('obstacleOutage')
  return undefined
}

/** @param {Status} status @param {Words} words */
export const showAttention = (status, words) => {
  const { text, figures } = words
  const { outages, provider, store, catalogue, certificate, config, budget, cache, at } = status
  /** @type {[tone: Tone, sentence: string, ...more: HTMLElement[]][]} */
  const found = []
  const { closure } = budget
  if (closure)
    found.push([
      'bad',
      text(
        'budgetClosed',
        figures.instant(closure.until, at),
        figures.duration(secondsBetween(at, closure.until)),
      ),
      element('code', {}, 'abohawa budget reopen'),
      ...(closure.reason === null ? [] : [ownSentence(closure.reason)]),
    ])
  for (const { outage, since, stale, errors } of outages)
    found.push([
      'bad',
      text(
        outage === 'provider' ? 'providerOutage' : 'storeOutage',
        figures.instant(since, at),
        figures.count(stale),
        figures.count(errors),
      ),
    ])
  if (provider.circuit === 'open')
    found.push(['bad', text('circuitOpen', figures.instant(provider.retryAt, at, true))])
  if (provider.circuit === 'half-open') found.push(['warn', text('circuitHalfOpen')])
  if (provider.firstErrorAt && (provider.circuit !== 'closed' || closure))
    found.push([
      'bad',
      provider.firstErrorAt <= at
        ? text('errorsNow')
        : text(
            'firstError',
            figures.instant(provider.firstErrorAt, at),
            figures.duration(secondsBetween(at, provider.firstErrorAt)),
          ),
    ])
  if (!store.isUp) found.push(['bad', text('storeDown', store.kind, store.fault ?? unknown)])
  if (store.writeFault) found.push(['bad', text('storeUnwritten', store.writeFault)])
  for (const window of budget.windows) {
    const name = text(window.name)
    if (window.used >= window.limit)
      found.push([
        window.name === 'minute' ? 'warn' : 'bad',
        text('ranOut', name, figures.instant(window.resetsAt, at, true)),
      ])
    else if (window.exhaustedAt && window.name !== 'minute')
      found.push([
        'warn',
        text(
          'runsOut',
          name,
          figures.instant(window.exhaustedAt, at),
          figures.duration(secondsBetween(window.exhaustedAt, window.resetsAt)),
        ),
      ])
  }
  if (!budget.shared && status.instances.length > 1) found.push(['warn', text('budgetApart')])
  if (cache.counts.failed > 0) found.push(['warn', text('failedCells', figures.count(cache.counts.failed))])
  if (certificate && certificate.renewal !== 'valid')
    found.push([
      certificateTones[certificate.renewal],
      text(
        certificate.renewal === 'expired' ? 'certificateExpired' : 'certificateExpires',
        figures.instant(certificate.expiresAt, at),
        figures.duration(Math.abs(secondsBetween(at, certificate.expiresAt))),
      ),
    ])
  if (catalogue.fault) found.push(['warn', text('catalogueFault', catalogue.fault)])
  if (config.fault) found.push(['warn', text('configFault', config.fault)])
  if (config.needsRestart.length > 0)
    found.push(['warn', text('needsRestart', config.needsRestart.join(', '))])
  if (config.differs.length > 0)
    found.push(['warn', text('differs'), element('code', {}, config.differs.map(shortId).join(', '))])
  const sentences =
    found.length > 0 ? found : /** @type {typeof found} */ ([['good', text('nothingNeedsAttention')]])
  setChildren(
    byId('attention'),
    sentences.map(([tone, sentence, ...more]) =>
      element(
        'li',
        { class: tone },
        element('i', { 'aria-hidden': 'true' }, signs[tone]),
        element('span', {}, sentence, ...more.flatMap(each => [' ', each])),
      ),
    ),
  )
}

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

/** @param {string | null} hash */
const short = hash => (hash === null ? unknown : hash.replace(/^sha256:/, '').slice(0, 8))

/** @param {Status} status @param {Words} words */
export const showParts = (
  { provider, budget, store, catalogue, certificate, run, cache, config, at },
  words,
) => {
  const { text, figures } = words
  /** @param {string | null | undefined} iso */
  const instant = iso => figures.instant(iso, at)
  const circuitTone = /** @type {const} */ ({ closed: 'good', 'half-open': 'warn', open: 'bad' })
  const failure = provider.lastFailure
  /** @param {string | null} iso */
  const sooner = iso => (iso !== null && iso <= at ? text('atOnce') : instant(iso))
  /** @type {[title: TextName, state: HTMLElement | null, rows: HTMLElement[]][]} */
  const parts = [
    [
      'provider',
      budget.closure && provider.circuit === 'closed'
        ? badge(text('closedUntil', instant(budget.closure.until)), 'bad')
        : badge(`${text('circuit')}: ${text(provider.circuit)}`, circuitTone[provider.circuit]),
      [
        ...factRows([
          [text('lastSuccess'), instant(provider.lastSuccessAt)],
          [text('firstErrorAt'), sooner(provider.firstErrorAt)],
          [text('lastFailure'), failure ? instant(failure.at) : text('none')],
        ]),
        ...(failure
          ? [
              element(
                'div',
                { class: 'failure' },
                element('dt', { class: 'unseen' }, text('lastFailure')),
                element('dd', {}, failureLabel(failure.code, words), ' ', ownSentence(failure.message)),
              ),
            ]
          : []),
      ],
    ],
    [
      'store',
      badge(
        `${store.kind === 'redis' ? text('redis') : store.kind === 'embedded' ? text('embedded') : store.kind}: ${text(store.isUp ? 'up' : 'away')}`,
        store.isUp ? 'good' : 'bad',
      ),
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
        : [
            element(
              'div',
              { class: 'empty' },
              element('dt', { class: 'unseen' }, text('run')),
              element('dd', {}, text('noRun')),
            ),
          ],
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
      badge(text(catalogue.fault ? 'refused' : 'fine'), catalogue.fault ? 'warn' : 'good'),
      factRows([
        [text('places'), figures.count(catalogue.places)],
        [text('checksum'), element('code', {}, short(catalogue.checksum)), catalogue.checksum],
      ]),
    ],
    [
      'configuration',
      badge(text(config.fault ? 'refused' : 'fine'), config.fault ? 'warn' : 'good'),
      factRows([
        [text('hash'), element('code', {}, short(config.hash)), config.hash],
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

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {boolean} [isNumber]
 */

/** @param {string} caption @param {readonly Column[]} columns @param {readonly (readonly (string | Node)[])[]} rows */
const table = (caption, columns, rows) =>
  element(
    'table',
    { class: 'figures' },
    element('caption', { class: 'unseen' }, caption),
    element(
      'thead',
      {},
      element(
        'tr',
        {},
        ...columns.map(({ title, isNumber }) =>
          element('th', { scope: 'col', class: isNumber && 'number' }, title),
        ),
      ),
    ),
    element(
      'tbody',
      {},
      ...rows.map(cells =>
        element(
          'tr',
          {},
          ...cells.map((cell, i) =>
            element(
              i === 0 ? 'th' : 'td',
              { scope: i === 0 && 'row', class: columns[i]?.isNumber && 'number' },
              cell,
            ),
          ),
        ),
      ),
    ),
  )

/** @param {HTMLElement} host @param {string} empty @param {boolean} isEmpty @param {() => HTMLElement} make */
const tableOr = (host, empty, isEmpty, make) =>
  setChildren(host, [isEmpty ? element('p', { class: 'empty' }, empty) : make()])

/** @param {string | null} phase @returns {phase is 'starting' | 'ready' | 'draining'} */
const isPhase = phase => phase === 'starting' || phase === 'ready' || phase === 'draining'

/** @param {Status} status @param {Words} words */
export const showLists = ({ instances, config, top, keysNearLimit, at }, { text, figures }) => {
  tableOr(byId('instances'), text('noInstances'), instances.length === 0, () =>
    table(
      text('instances'),
      [
        { title: text('instance') },
        { title: text('id') },
        { title: text('phase') },
        {
          title: text('requestsColumn').concat('/', figures.language === 'bn' ? 'সে.' : 's'),
          isNumber: true,
        },
        { title: text('hitShare'), isNumber: true },
        { title: text('memory'), isNumber: true },
        { title: text('startedAt'), isNumber: true },
        { title: text('version') },
        { title: text('configuration') },
      ],
      instances.map(one => [
        element(
          'span',
          {},
          `${one.host ?? one.id}${one.pid === null ? '' : ` · ${one.pid}`}`,
          one.isSelf && ' ',
          one.isSelf && element('em', {}, text('thisOne')),
        ),
        element('code', { title: one.id }, shortId(one.id)),
        badge(
          isPhase(one.phase) ? text(one.phase) : (one.phase ?? unknown),
          one.phase === 'ready' ? 'good' : 'warn',
        ),
        figures.measured(one.requestsPerSecond),
        figures.share(one.hitShare),
        figures.bytes(one.memoryBytes),
        figures.instant(one.startedAt, at),
        one.version ?? unknown,
        element(
          'span',
          { class: 'hash' },
          element('code', { title: one.configHash }, short(one.configHash)),
          config.differs.includes(one.id) && badge(text('isDifferent'), 'warn'),
        ),
      ]),
    ),
  )
  tableOr(byId('top-places'), text('noRequests'), top.places.length === 0, () =>
    table(
      text('topPlaces'),
      [{ title: text('place') }, { title: text('requestsOfLate'), isNumber: true }],
      top.places.map(place => [placeLabel(place, { text, figures }), figures.count(place.requests)]),
    ),
  )
  tableOr(byId('top-keys'), text('noRequests'), top.keys.length === 0, () =>
    table(
      text('topKeys'),
      [
        { title: text('key') },
        { title: text('requestsToday'), isNumber: true },
        { title: text('cellsLoaded'), isNumber: true },
      ],
      top.keys.map(({ keyId, requests, cellsLoaded, shareOfDay }) => [
        element('code', {}, keyId),
        figures.count(requests),
        element(
          'span',
          {},
          figures.count(cellsLoaded),
          cellsLoaded > 0 &&
            shareOfDay !== null &&
            element('small', { class: 'detail' }, text('shareOfDay', figures.share(shareOfDay))),
        ),
      ]),
    ),
  )
  tableOr(byId('near-limit'), text('nobodyNearLimit'), keysNearLimit.length === 0, () =>
    table(
      text('nearLimit'),
      [{ title: text('key') }, { title: text('subscriber') }, { title: text('used'), isNumber: true }],
      keysNearLimit.map(({ keyId, subscriber, tier, used, limit }) => [
        element('code', { title: tier }, keyId),
        subscriber ?? unknown,
        element(
          'span',
          {},
          text('usedOf', figures.count(used), figures.count(limit)),
          element('small', { class: 'detail' }, figures.share(limit > 0 ? used / limit : 1)),
        ),
      ]),
    ),
  )
}

/** @param {string} type @returns {type is 'division' | 'district' | 'upazila' | 'union' | 'coords'} */
const isPlaceType = type => ['division', 'district', 'upazila', 'union', 'coords'].includes(type)

/** The name in the language of the page, and what it is. @param {import('./contract.ts').Place} place @param {Words} words */
export const placeLabel = ({ type, name_en, name_bn }, { text, figures }) => {
  const name = figures.language === 'bn' ? name_bn || name_en : name_en || name_bn
  return element('span', {}, name, ' ', element('small', {}, isPlaceType(type) ? text(type) : type))
}
