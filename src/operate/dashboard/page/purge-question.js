// The question before something is removed or all is purged: what either does. A purge marks stale; only the button that says
// so removes.

import { byId, setText } from './dom.js'
import { order } from './listener.js'

/** @typedef {import('./texts.js').TextName} TextName */

/**
 * @typedef {object} Question
 * @property {string} scope as the listener takes it
 * @property {TextName} title
 * @property {string} sentence
 * @property {TextName} soft on the button
 * @property {TextName} hard on the button
 * @property {(kind: 'soft' | 'hard') => void} onDone
 */

/** @param {object} parts @param {() => { text: import('./texts.js').Texts }} parts.words @param {(error: unknown) => void} parts.onFault */
export const createPurgeQuestion = ({ words, onFault }) => {
  const dialog = /** @type {HTMLDialogElement} */ (byId('purge-question'))
  const [title, sentence, result] = ['title', 'text', 'result'].map(name => byId(`purge-${name}`))
  const [cancel, soft, hard] = ['cancel', 'soft', 'hard'].map(name => byId(`purge-${name}`))
  if (!title || !sentence || !result || !cancel || !soft || !hard) throw new Error('no dialog')
  /** @type {Question | undefined} */
  let asked

  /** @param {'soft' | 'hard'} kind */
  const purge = async kind => {
    if (!asked) return
    const { scope, onDone } = asked
    const { text } = words()
    setText(result, text('working'))
    try {
      await order('/cache/purge', { scope, hard: kind === 'hard' })
      onDone(kind)
      dialog.close()
    } catch (error) {
      setText(result, text('failedOrder', error instanceof Error ? error.message : String(error)))
      onFault(error)
    }
  }
  cancel.addEventListener('click', () => dialog.close())
  soft.addEventListener('click', () => purge('soft'))
  hard.addEventListener('click', () => purge('hard'))

  return {
    /** @param {Question} question */
    ask: question => {
      const { text } = words()
      asked = question
      setText(title, text(question.title))
      setText(sentence, question.sentence)
      setText(soft, text(question.soft))
      setText(hard, text(question.hard))
      setText(result, '')
      dialog.showModal()
      cancel.focus()
    },
  }
}
