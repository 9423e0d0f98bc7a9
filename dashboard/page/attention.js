// The list of what needs attention: a sentence for each outage, closed budget, used limit and fault in the status.

import { secondsBetween, unknown } from '../../src/common/page/figures.js'
import { byId, element, setChildren } from './dom.js'
import { ownSentence, shortId, signs } from './labels.js'

/** @typedef {import('./contract.ts').Status} Status */
/** @typedef {import('./labels.js').Tone} Tone */
/** @typedef {import('./labels.js').Words} Words */

/** @type {Record<NonNullable<Status['certificate']>['renewal'], Tone>} */
const certificateTones = { valid: 'good', due: 'warn', urgent: 'bad', expired: 'bad' }

/** @param {Status} status @param {Words} words */
export const showAttention = (status, words) => {
  const { text, figures } = words
  const { outages, provider, store, catalogue, certificate, config, budget, cache, at } = status
  /** @type {HTMLElement[]} */
  const found = []
  /** @param {Tone} tone @param {string} sentence @param {...HTMLElement} more */
  const add = (tone, sentence, ...more) =>
    found.push(
      element(
        'li',
        { class: tone },
        element('i', { 'aria-hidden': 'true' }, signs[tone]),
        element('span', {}, sentence, ...more.flatMap(each => [' ', each])),
      ),
    )
  /** @param {string | null | undefined} iso */
  const instant = iso => figures.instant(iso, at)
  /** @param {string} from @param {string} to */
  const between = (from, to) => figures.duration(Math.abs(secondsBetween(from, to)))
  const { closure } = budget
  if (closure)
    add(
      'bad',
      text('budgetClosed', instant(closure.until), between(at, closure.until)),
      element('code', {}, 'abohawa budget reopen'),
      ...(closure.reason === null ? [] : [ownSentence(closure.reason)]),
    )
  for (const { outage, since, stale, errors } of outages) {
    const name = outage === 'provider' ? 'providerOutage' : 'storeOutage'
    add('bad', text(name, instant(since), figures.count(stale), figures.count(errors)))
  }
  if (provider.circuit === 'open')
    add('bad', text('circuitOpen', figures.instant(provider.retryAt, at, true)))
  if (provider.circuit === 'half-open') add('warn', text('circuitHalfOpen'))
  const used = status.upstreams.find(({ inUse }) => inUse)
  if (used && used !== status.upstreams[0]) add('warn', text('fallbackInUse', used.name))
  const { firstErrorAt } = provider
  if (firstErrorAt && (provider.circuit !== 'closed' || closure))
    add(
      'bad',
      firstErrorAt <= at
        ? text('errorsNow')
        : text('firstError', instant(firstErrorAt), between(at, firstErrorAt)),
    )
  if (!store.isUp) add('bad', text('storeDown', store.kind, store.fault ?? unknown))
  for (const { name, used, limit, resetsAt, exhaustedAt } of budget.windows) {
    if (used >= limit)
      add(name === 'minute' ? 'warn' : 'bad', text('ranOut', text(name), figures.instant(resetsAt, at, true)))
    else if (exhaustedAt && name !== 'minute')
      add('warn', text('runsOut', text(name), instant(exhaustedAt), between(exhaustedAt, resetsAt)))
  }
  if (!budget.shared && status.instances.length > 1) add('warn', text('budgetApart'))
  if (cache.counts.failed > 0) add('warn', text('failedCells', figures.count(cache.counts.failed)))
  if (certificate && certificate.renewal !== 'valid') {
    const { expiresAt, renewal } = certificate
    const name = renewal === 'expired' ? 'certificateExpired' : 'certificateExpires'
    add(certificateTones[renewal], text(name, instant(expiresAt), between(at, expiresAt)))
  }
  if (catalogue.fault) add('warn', text('catalogueFault', catalogue.fault))
  if (config.fault) add('warn', text('configFault', config.fault))
  if (config.needsRestart.length > 0) add('warn', text('needsRestart', config.needsRestart.join(', ')))
  if (config.differs.length > 0)
    add('warn', text('differs'), element('code', {}, config.differs.map(shortId).join(', ')))
  if (found.length === 0) add('good', text('nothingNeedsAttention'))
  setChildren(byId('attention'), found)
}
