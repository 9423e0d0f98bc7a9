// The list of what needs attention: a sentence for each outage, closed budget, used limit and fault in the status.

import { secondsBetween, unknown } from '../../../common/page/figures.js'
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
