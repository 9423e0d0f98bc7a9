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
      `Closed until ${instant(closure.until)} (in ${between(at, closure.until)}): the provider reported that a limit is used up, and no gateway loads weather. If the provider is wrong, end it with `,
      html`<code>abohawa budget reopen</code> `,
      closure.reason !== null && ownSentence(closure.reason),
    ])
  for (const { outage, since, stale, errors } of outages)
    found.push([
      'bad',
      `Outage of the ${outage} since ${instant(since)}. Requests answered from stale entries: ${figures.count(stale)}; ended in an error: ${figures.count(errors)}.`,
    ])
  if (provider.circuit === 'open')
    found.push([
      'bad',
      `The circuit to the provider is open: no request is sent. Next probe: ${exact(provider.retryAt)}.`,
    ])
  if (provider.circuit === 'half-open')
    found.push([
      'warn',
      `The circuit to the provider is ${circuitWord('half-open')}: one probe is under way.`,
    ])
  const used = status.upstreams.find(({ inUse }) => inUse)
  if (used && used !== status.upstreams[0])
    found.push(['warn', `New weather is loaded from the fallback ${used.name}.`])
  const { firstErrorAt } = provider
  if (firstErrorAt && (provider.circuit !== 'closed' || closure))
    found.push([
      'bad',
      firstErrorAt <= at
        ? "Consumers get errors now: a cell in demand can't be served."
        : `Without the provider, the first consumer gets an error at ${instant(firstErrorAt)} (in ${between(at, firstErrorAt)}).`,
    ])
  if (!store.isUp) found.push(['bad', `The store (${store.kind}) is away: ${store.fault ?? unknown}`])
  for (const { name, used, limit, resetsAt, exhaustedAt } of budget.windows) {
    if (used >= limit)
      found.push([
        name === 'minute' ? 'warn' : 'bad',
        `The budget of the ${name} is used up until ${exact(resetsAt)}.`,
      ])
    else if (exhaustedAt && name !== 'minute')
      found.push([
        'warn',
        `The budget of the ${name} runs out at ${instant(exhaustedAt)}, ${between(exhaustedAt, resetsAt)} before it resets.`,
      ])
  }
  if (!budget.shared && status.instances.length > 1)
    found.push(['warn', 'The store does not count the budget of the fleet: each instance counts for itself.'])
  if (cache.counts.failed > 0)
    found.push(['warn', `Cells that could not be loaded: ${figures.count(cache.counts.failed)}.`])
  if (certificate && certificate.renewal !== 'valid') {
    const { expiresAt, renewal } = certificate
    const [end, left] = [instant(expiresAt), between(at, expiresAt)]
    found.push([
      certificateTones[renewal],
      renewal === 'expired'
        ? `The certificate of the API expired ${end}, ${left} ago: no client can connect.`
        : `The certificate of the API expires ${end}, in ${left}.`,
    ])
  }
  if (catalogue.fault) found.push(['warn', `The newer catalogue was refused: ${catalogue.fault}`])
  if (config.fault) found.push(['warn', `The newer configuration was refused: ${config.fault}`])
  if (config.needsRestart.length > 0)
    found.push(['warn', `Settings that wait for a restart: ${config.needsRestart.join(', ')}`])
  if (config.differs.length > 0)
    found.push([
      'warn',
      'Instances with another configuration: ',
      html`<code>${config.differs.map(shortId).join(', ')}</code>`,
    ])
  if (found.length === 0) found.push(['good', 'Nothing needs attention.'])
  return found.map(([tone, ...parts]) => html`<li class="notice ${tone}"><span>${parts}</span></li>`)
}
