// The dialog before a purge: what purging and removing do, and what they cost.

import { order } from './listener.js'
import { Component, createRef } from './preact.js'
import { factList, figures, html, messageOf } from './view.js'

/** @typedef {import('./contract.ts').Price} Price */

/**
 * @typedef {object} Question
 * @property {string} [scope] as the listener takes it
 * @property {readonly { scope: string, label: string }[]} [areas] to choose one of in place of the scope
 * @property {string} title
 * @property {string} sentence
 * @property {string} soft on the button
 * @property {string} hard on the button
 * @property {(kind: 'soft' | 'hard') => void} onDone
 */

/** @typedef {{ area: string | undefined, price?: unknown, result: string }} State */
/** @extends {Component<{ question: Question, onFault: (error: unknown) => void, onClose: () => void }, State>} */
export class PurgeQuestion extends Component {
  /** @type {State} */
  state = { area: this.props.question.areas?.[0]?.scope, result: '' }
  dialog = /** @type {import('./preact.js').RefObject<HTMLDialogElement>} */ (createRef())
  cancel = /** @type {import('./preact.js').RefObject<HTMLButtonElement>} */ (createRef())
  prices = 0

  componentDidMount() {
    this.dialog.current?.showModal()
    // Enter at once does no harm.
    this.cancel.current?.focus()
    void this.readPrice(this.state.area)
  }

  /** @param {string | undefined} area */
  scopeOf = area => (area === undefined ? { scope: this.props.question.scope } : { scope: area, area: true })

  /** @param {unknown} error */
  fail(error) {
    this.setState({ result: `Not done: ${messageOf(error)}` })
    this.props.onFault(error)
  }

  /** @param {string | undefined} area */
  async readPrice(area) {
    this.prices += 1
    const own = this.prices
    this.setState({ area, price: html`<p class="note">Calculating the cost…</p>` })
    try {
      const [soft, hard] = await Promise.all(
        [false, true].map(hard => order('/cache/purge', { ...this.scopeOf(area), hard, dryRun: true })),
      )
      // Another area may have been chosen meanwhile.
      if (own === this.prices) this.setState({ price: priceFacts(soft, hard) })
    } catch (error) {
      if (own !== this.prices) return
      this.setState({ price: null })
      this.fail(error)
    }
  }

  /** @param {'soft' | 'hard'} kind */
  async purge(kind) {
    this.setState({ result: 'Working…' })
    try {
      await order('/cache/purge', { ...this.scopeOf(this.state.area), hard: kind === 'hard' })
      this.props.question.onDone(kind)
      this.dialog.current?.close()
    } catch (error) {
      this.fail(error)
    }
  }

  render() {
    const { question, onClose } = this.props
    const { area, price, result } = this.state
    const choose = (/** @type {{ currentTarget: HTMLSelectElement }} */ event) =>
      this.readPrice(event.currentTarget.value)
    return html`<dialog id="purge-question" ref=${this.dialog} aria-labelledby="purge-title" aria-describedby="purge-text" onClose=${onClose}>
      <h2 id="purge-title">${question.title}</h2>
      <p id="purge-text">${question.sentence}</p>
      ${
        question.areas &&
        html`<label>Area${' '}
          <select id="purge-areas" value=${area} onChange=${choose}>
            ${question.areas.map(({ scope, label }) => html`<option value=${scope}>${label}</option>`)}
          </select>
        </label>`
      }
      <div id="purge-price" role="status">${price}</div>
      <p class="fault" role="status">${result}</p>
      <footer class="row end">
        <button id="purge-cancel" ref=${this.cancel} type="button" class="quiet" onClick=${() => this.dialog.current?.close()}>Cancel</button>
        <button type="button" onClick=${() => this.purge('soft')}>${question.soft}</button>
        <button type="button" class="quiet danger" onClick=${() => this.purge('hard')}>${question.hard}</button>
      </footer>
    </dialog>`
  }
}

/** The same figures as `abohawa cache purge --dry-run`. @param {Price} soft @param {Price} hard */
const priceFacts = (soft, hard) => {
  const { count } = figures
  const { cells, cached, weight, oneKeyNow, reloadedAt, fallbacks, at } = soft
  /** @param {Price} of @param {string} left */
  const roomOf = ({ fitsNow, refusedNow }, left) =>
    refusedNow === 0
      ? 'the budget covers all cells'
      : `the budget covers ${count(fitsNow)}; ${count(refusedNow)} stay ${left}`
  /** @type {import('./view.js').Fact} */
  const now = ['Cached now', `${count(cached)} of ${count(cells)} cells`]
  if (cached === 0) return factList([now])
  return factList([
    now,
    ['Maximum cost', `${count(weight)} of the budget, if all cells are requested`],
    fallbacks > 0 && ['Budget', 'of the primary upstream, without fallbacks'],
    ['If purged now', roomOf(soft, 'stale')],
    ['If removed now', roomOf(hard, 'without weather')],
    oneKeyNow < cached && ['One key can load now', `${count(oneKeyNow)}, if other keys load too`],
    [
      'All cells reloaded',
      reloadedAt === null
        ? 'never: a limit is smaller than one cell'
        : reloadedAt <= at
          ? 'immediately'
          : `by demand, at ${figures.instant(reloadedAt, at, true)} at the earliest`,
    ],
  ])
}
