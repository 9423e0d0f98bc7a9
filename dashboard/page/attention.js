// The list of what needs attention: a sentence for each outage, closed budget, used limit and fault in the status.

import { secondsBetween, unknown } from '../../src/common/page/figures.js'
import { circuitWord, figures, html, ownSentence, shortId } from './view.js'

/** @typedef {import('./contract.ts').Status} Status */
/** @typedef {import('./view.js').Tone} Tone */

/** @type {Record<NonNullable<Status['certificate']>['renewal'], Tone>} */
const certificateTones = { valid: 'good', due: 'warn', urgent: 'bad', expired: 'bad' }

/** @param {{ status: Status }} props */
export const Attention = ({ status }) => {
  const { outages, provider, store, catalogue, certificate, config, budget, cache, at } = status
  /** @type {[Tone, ...import('./view.js').Children[]][]} */
  const found = []
  /** @param {string | null | undefined} iso */
  const instant = iso => figures.instant(iso, at)
  /** @param {string | null | undefined} iso */
  const exact = iso => figures.instant(iso, at, true)
  /** @param {string} from @param {string} to */
  const between = (from, to) => figures.duration(Math.abs(secondsBetween(from, to)))
  const { closure } = budget
  if (closure)
    found.push([
      'bad',
      `Closed until ${instant(closure.until)} (in ${between(at, closure.until)}): the provider reported that a limit is used up. No gateway loads weather. If the provider is wrong, run `,
      html`<code>abohawa budget reopen</code> `,
      closure.reason !== null && ownSentence(closure.reason),
    ])
  for (const { outage, since, stale, errors } of outages)
    found.push([
      'bad',
      `${outage === 'provider' ? 'Provider' : 'Store'} outage since ${instant(since)}. Stale responses: ${figures.count(stale)}. Errors: ${figures.count(errors)}.`,
    ])
  if (provider.circuit === 'open')
    found.push([
      'bad',
      `The provider circuit is open and no requests are sent. Next probe: ${exact(provider.retryAt)}.`,
    ])
  if (provider.circuit === 'half-open')
    found.push(['warn', `The provider circuit is ${circuitWord('half-open')}: one probe is in progress.`])
  const used = status.upstreams.find(({ inUse }) => inUse)
  if (used && used !== status.upstreams[0])
    found.push(['warn', `New weather comes from the fallback ${used.name}.`])
  const { firstErrorAt } = provider
  if (firstErrorAt && (provider.circuit !== 'closed' || closure))
    found.push([
      'bad',
      firstErrorAt <= at
        ? "Consumers get errors now: a requested cell can't be served."
        : `If the provider stays down, the first consumer error comes at ${instant(firstErrorAt)} (in ${between(at, firstErrorAt)}).`,
    ])
  if (!store.isUp) found.push(['bad', `The store (${store.kind}) is down: ${store.fault ?? unknown}`])
  for (const { name, used, limit, resetsAt, exhaustedAt } of budget.windows) {
    if (used >= limit)
      found.push([
        name === 'minute' ? 'warn' : 'bad',
        `The ${name} budget is used up until ${exact(resetsAt)}.`,
      ])
    else if (exhaustedAt && name !== 'minute')
      found.push([
        'warn',
        `The ${name} budget runs out at ${instant(exhaustedAt)}, ${between(exhaustedAt, resetsAt)} before it resets.`,
      ])
  }
  if (!budget.shared && status.instances.length > 1)
    found.push(['warn', 'The store does not share the budget: each instance counts its own.'])
  if (cache.counts.failed > 0)
    found.push(['warn', `Cells that could not be loaded: ${figures.count(cache.counts.failed)}.`])
  if (certificate && certificate.renewal !== 'valid') {
    const { expiresAt, renewal } = certificate
    const [end, left] = [instant(expiresAt), between(at, expiresAt)]
    found.push([
      certificateTones[renewal],
      renewal === 'expired'
        ? `The API certificate expired ${end}, ${left} ago: no client can connect.`
        : `The API certificate expires ${end}, in ${left}.`,
    ])
  }
  if (catalogue.fault) found.push(['warn', `The new catalogue was rejected: ${catalogue.fault}`])
  if (config.fault) found.push(['warn', `The new configuration was rejected: ${config.fault}`])
  if (config.needsRestart.length > 0)
    found.push(['warn', `Settings that need a restart: ${config.needsRestart.join(', ')}`])
  if (config.differs.length > 0)
    found.push([
      'warn',
      'Instances with a different configuration: ',
      html`<code>${config.differs.map(shortId).join(', ')}</code>`,
    ])
  if (found.length === 0) found.push(['good', 'Nothing needs attention.'])
  return found.map(([tone, ...parts]) => html`<li class="notice ${tone}"><span>${parts}</span></li>`)
}
