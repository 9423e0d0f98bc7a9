// The panel of keys: most requests today, or a search. It needs a token, because it names subscribers.

import { unknown } from '../../src/common/page/figures.js'
import { Refused, read, token } from './listener.js'
import { Component } from './preact.js'
import { figures, html, ownSentence, table, usedOf } from './view.js'

/** @typedef {import('./contract.ts').KeyPanel} Report */

const everyMs = 10_000
const pauseMs = 250
const mostCodes = 3
const [bar, height] = [4, 22]

/** The requests of each hour as bars. @param {readonly number[]} hours */
const bars = hours => {
  const most = Math.max(...hours)
  const label = `This hour: ${figures.count(hours.at(-1))}; at most in an hour: ${figures.count(most)}`
  const width = bar * hours.length
  return html`<svg class="hours" role="img" aria-label=${label} viewBox="0 0 ${width} ${height}" width=${width} height=${height}>
    ${hours.map((count, i) => {
      const tall = count === 0 ? 1 : Math.max(2, Math.round((count / most) * height))
      return html`<rect x=${i * bar} y=${height - tall} width=${bar - 1} height=${tall} fill="var(--line-1)" />`
    })}
  </svg>`
}

/** The most frequent codes, then how many others there were. @param {Readonly<Record<string, number>>} refusals */
const codes = refusals => {
  const all = Object.entries(refusals).sort(([, one], [, other]) => other - one)
  if (all.length === 0) return 'none'
  const rest = all.slice(mostCodes).reduce((sum, [, count]) => sum + count, 0)
  return html`<span class="stack">
    ${all.slice(0, mostCodes).map(([code, count]) => html`<span><code>${code}</code> ${figures.count(count)}</span>`)}
    ${rest > 0 && html`<small>others: ${figures.count(rest)}</small>`}
  </span>`
}

/** @extends {Component<{ isConnected: boolean, onFault: (error: unknown) => void }, { report?: Report, fault: string, sought: string }>} */
export class KeyPanel extends Component {
  state = { fault: '', sought: '' }
  asked = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  waiting

  componentDidMount() {
    setInterval(() => {
      if (!document.hidden) void this.ask()
    }, everyMs)
  }

  /** @param {{ isConnected: boolean }} before */
  componentDidUpdate({ isConnected }) {
    if (!isConnected && this.props.isConnected) void this.ask()
  }

  async ask() {
    if (token.get() === null) return
    this.asked += 1
    const mine = this.asked
    try {
      const report = await read(`/usage/keys?q=${encodeURIComponent(this.state.sought)}`)
      if (mine === this.asked) this.setState({ report, fault: '' })
    } catch (error) {
      if (mine !== this.asked) return
      if (error instanceof Refused) this.setState({ fault: error.message })
      else this.props.onFault(error)
    }
  }

  /** @param {{ currentTarget: HTMLInputElement }} event */
  seek = ({ currentTarget }) => {
    this.setState({ sought: currentTarget.value.trim() })
    clearTimeout(this.waiting)
    this.waiting = setTimeout(() => void this.ask(), pauseMs)
  }

  render() {
    const { report, fault, sought } = /** @type {{ report?: Report, fault: string, sought: string }} */ (
      this.state
    )
    const hasToken = token.get() !== null
    const rows = (report?.keys ?? []).map(({ keyId, subscriber, tier, used, limit, here }) => [
      html`<code>${keyId}</code>`,
      subscriber ?? unknown,
      tier ?? unknown,
      limit === null ? figures.count(used) : usedOf(figures.count(used), figures.count(limit)),
      here ? bars(here.hours) : unknown,
      here ? codes(here.refusals) : unknown,
      figures.instant(here?.lastUsedAt, report?.at ?? ''),
    ])
    const empty = sought === '' ? 'No requests yet.' : 'No key or subscriber matches.'
    return html`<section class="panel" aria-labelledby="key-panel-title">
      <header class="row between">
        <h2 id="key-panel-title">Keys</h2>
        <div><input id="key-search" type="search" autocomplete="off" spellcheck=${false} maxlength="100" size="32"
          aria-label="Find a key or a subscriber" placeholder="Part of an id or a name" disabled=${!hasToken} onInput=${this.seek} /></div>
      </header>
      <p id="key-note" class="note">
        ${
          hasToken
            ? 'Usage is for the fleet; hours, errors and last use are for this gateway.'
            : 'Set ops.token to show keys and subscribers.'
        }
        ${fault !== '' && html` The keys could not be read: ${ownSentence(fault)}`}
        ${report && !report.isWhole && ' There may be more: narrow the search.'}
      </p>
      <p id="key-count" class="unseen" role="status">${report && `Keys shown: ${figures.count(report.keys.length)}`}</p>
      <div id="keys" class="scroll" tabindex="0" role="group" aria-label="Keys">
        ${table(
          'Keys',
          hasToken && report ? empty : '',
          [
            ['Key'],
            ['Subscriber'],
            ['Tier'],
            ['Used today', 'number'],
            ['24 hours'],
            ['Errors today'],
            ['Last used', 'number'],
          ],
          rows,
        )}
      </div>
    </section>`
  }
}
