// Parts of HTML that pages are made of: escaped text, facts, badges, notices, sections.

import { printable } from '../outside-text.ts'

/** Text that is HTML already. */
export type Html = string

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Text of our own, of any length and with its line breaks. */
export const markup = (text: string): Html => text.replaceAll(/[&<>"]/g, sign => escapes[sign] ?? sign)

/** Text from outside may stand in it: what turns the direction of a line is shown as an escape. */
export const escaped = (text: string): Html => markup(printable(text))

/** Names and values, the values in HTML; those without a value are left out. */
export const facts = (pairs: readonly (readonly [name: string, value: Html | undefined])[]): Html =>
  `<dl class="facts">${pairs
    .map(([name, value]) =>
      value === undefined ? '' : `<div><dt>${escaped(name)}</dt><dd>${value}</dd></div>`,
    )
    .join('')}</dl>`

export type State = 'good' | 'warn' | 'bad'

/** A state in a word; the stylesheet puts a sign beside its colour. */
export const badge = (state: State, text: string): Html =>
  `<span class="badge ${state}">${escaped(text)}</span>`

/** A paragraph that must not be missed. */
export const notice = (state: State, content: Html): Html =>
  `<div class="notice ${state}"><div>${content}</div></div>`

/** A part of the page with a heading; `id` is its address, of letters and hyphens. */
export const section = (id: string, title: string, content: Html): Html =>
  `<section class="panel" aria-labelledby="${id}"><h2 id="${id}">${escaped(title)}</h2>${content}</section>`
