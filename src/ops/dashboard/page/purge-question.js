// The question before a purge: what it does, and what to do in its place where nothing can be loaded now. There it suggests to
// mark stale, as the command and the listener do by themselves.

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

/**
 * @param {object} parts
 * @param {() => { text: import('./texts.js').Texts }} parts.words
 * @param {() => string | undefined} parts.obstacle why nothing can be loaded now
 * @param {(error: unknown) => void} parts.onFault
 */
export const createPurgeQuestion = ({ words, obstacle, onFault }) => {
  const dialog = /** @type {HTMLDialogElement} */ (byId('purge-question'))
  const [title, sentence, warning, result] = ['title', 'text', 'obstacle', 'result'].map(name =>
    byId(`purge-${name}`),
  )
  const [cancel, soft, hard] = ['cancel', 'soft', 'hard'].map(name => byId(`purge-${name}`))
  if (!title || !sentence || !warning || !result || !cancel || !soft || !hard) throw new Error('no dialog')
  /** @type {Question | undefined} */
  let asked
  let isObstructed = false

  /** @param {boolean | undefined} isSoft undefined leaves it to the listener */
  const purge = async isSoft => {
    if (!asked) return
    const { scope, onDone } = asked
    const { text } = words()
    setText(result, text('working'))
    try {
      const body = isSoft === undefined ? { scope } : { scope, soft: isSoft }
      const { kind, softBecause } = /** @type {import('./contract.ts').PurgeReport} */ (
        await order('/cache/purge', body)
      )
      onDone(kind)
      if (softBecause === null) dialog.close()
      else setText(result, text('softenedBecause', softBecause))
    } catch (error) {
      setText(result, text('failedOrder', error instanceof Error ? error.message : String(error)))
      onFault(error)
    }
  }
  cancel.addEventListener('click', () => dialog.close())
  soft.addEventListener('click', () => purge(true))
  hard.addEventListener('click', () => purge(isObstructed ? false : undefined))

  return {
    /** @param {Question} question */
    ask: question => {
      const { text } = words()
      const reason = obstacle()
      asked = question
      isObstructed = reason !== undefined
      setText(title, text(question.title))
      setText(sentence, question.sentence)
      warning.hidden = !isObstructed
      setText(warning, reason === undefined ? '' : `${reason} ${text('purgeObstructed')}`)
      setText(soft, text(question.soft))
      setText(hard, text(isObstructed ? 'purgeAllTheSame' : question.hard))
      soft.classList.toggle('quiet', !isObstructed)
      hard.classList.toggle('quiet', isObstructed)
      setText(result, '')
      dialog.showModal()
      cancel.focus()
    },
  }
}
