// The dialog for the token. Escape does not close it, because nothing is shown without a token.

import { token } from './listener.js'
import { Component, createRef } from './preact.js'
import { html } from './view.js'

/** A second Escape would close it although it was not cancelled. @param {KeyboardEvent} event */
const stayOpen = event => {
  if (event.key === 'Escape') event.preventDefault()
}

/** @extends {Component<{ isWrong: boolean, onGiven: () => void, onClose: () => void }>} `isWrong`: the one that was given before */
export class TokenDialog extends Component {
  dialog = /** @type {import('./preact.js').RefObject<HTMLDialogElement>} */ (createRef())

  isGiven = false

  componentDidMount() {
    this.dialog.current?.showModal()
  }

  /** @param {Event & { currentTarget: HTMLFormElement }} event */
  send = event => {
    event.preventDefault()
    token.set(String(new FormData(event.currentTarget).get('token')).trim())
    this.isGiven = true
    this.dialog.current?.close()
    this.props.onGiven()
  }

  // The gesture that goes back on a phone closes it, whatever is prevented.
  close = () => {
    if (this.isGiven) this.props.onClose()
    else this.dialog.current?.showModal()
  }

  render() {
    const { isWrong } = this.props
    return html`<dialog id="token" ref=${this.dialog} aria-labelledby="token-title" aria-describedby="token-text"
      closedby="none" onKeyDown=${stayOpen} onCancel=${(/** @type {Event} */ event) => event.preventDefault()} onClose=${this.close}>
      <form id="token-form" class="stack" onSubmit=${this.send}>
        <h2 id="token-title">Token</h2>
        <p id="token-text">Enter the token of this listener (ops.token). This tab keeps it until you close the tab.</p>
        <label for="token-value">Token</label>
        <input id="token-value" name="token" type="password" autocomplete="off" required maxlength="256" aria-describedby="token-fault" aria-invalid=${String(isWrong)} />
        <p id="token-fault" class="fault" role="alert">${isWrong && 'The token is wrong.'}</p>
        <button type="submit">Open the dashboard</button>
      </form>
    </dialog>`
  }
}
