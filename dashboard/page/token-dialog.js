// The dialog for the token. Escape does not close it, because nothing is shown without a token.

import { token } from './listener.js'
import { Component, createRef } from './preact.js'
import { html } from './view.js'

/** @extends {Component<{ isWrong: boolean, onGiven: () => void, onClose: () => void }>} `isWrong`: the one that was given before */
export class TokenDialog extends Component {
  dialog = /** @type {import('./preact.js').RefObject<HTMLDialogElement>} */ (createRef())

  componentDidMount() {
    this.dialog.current?.showModal()
  }

  /** @param {Event & { currentTarget: HTMLFormElement }} event */
  send = event => {
    event.preventDefault()
    token.set(String(new FormData(event.currentTarget).get('token')).trim())
    this.dialog.current?.close()
    this.props.onGiven()
  }

  render() {
    const { isWrong, onClose } = this.props
    return html`<dialog id="token" ref=${this.dialog} aria-labelledby="token-title" aria-describedby="token-text"
      onCancel=${(/** @type {Event} */ event) => event.preventDefault()} onClose=${onClose}>
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
