// Parts of HTML that pages are made of: escaped text, tables that scroll on a phone, facts, badges, notices.

import { printable } from '../outside-text.ts'

/** Text that is HTML already. */
export type Html = string

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Text of our own, of any length and with its line breaks. */
export const markup = (text: string): Html => text.replaceAll(/[&<>"]/g, sign => escapes[sign] ?? sign)

/** Text from outside may stand in it: what turns the direction of a line is shown as an escape. */
export const escaped = (text: string): Html => markup(printable(text))

/** A name, path or command. */
export const code = (text: string): Html => `<code>${escaped(text)}</code>`

export type Column = { readonly head: string; readonly isNumber?: boolean }

/**
 * @param label what the table holds, for screen readers
 * @param rows cells of HTML; the first is the head of its row
 * @param marked rows that stand out
 */
export const table = (
  label: string,
  columns: readonly Column[],
  rows: readonly (readonly Html[])[],
  marked: ReadonlySet<number> = new Set(),
): Html => {
  const kind = (at: number): string => (columns[at]?.isNumber ? ' class="number"' : '')
  const heads = columns.map(({ head }, at) => `<th scope="col"${kind(at)}>${escaped(head)}</th>`).join('')
  const lines = rows.map(
    ([first = '', ...cells], row) =>
      `<tr${marked.has(row) ? ' class="marked"' : ''}><th scope="row"${kind(0)}>${first}</th>${cells.map((cell, at) => `<td${kind(at + 1)}>${cell}</td>`).join('')}</tr>`,
  )
  return `<div class="scroll" tabindex="0" role="group" aria-label="${escaped(label)}"><table><thead><tr>${heads}</tr></thead><tbody>${lines.join('\n')}</tbody></table></div>`
}

/** Names and values, the values in HTML; those without a value are left out. */
export const facts = (pairs: readonly (readonly [name: string, value: Html | undefined])[]): Html =>
  `<dl class="facts">${pairs
    .map(([name, value]) =>
      value === undefined ? '' : `<div><dt>${escaped(name)}</dt><dd>${value}</dd></div>`,
    )
    .join('')}</dl>`

/** Large figures in a row: what readers want first. */
export const tiles = (
  each: readonly { readonly name: string; readonly value: string; readonly note?: string | undefined }[],
): Html =>
  `<dl class="tiles">${each
    .map(
      ({ name, value, note }) =>
        `<div><dt>${escaped(name)}</dt><dd>${escaped(value)}${note === undefined ? '' : `<small>${escaped(note)}</small>`}</dd></div>`,
    )
    .join('')}</dl>`

export type State = 'good' | 'warn' | 'bad'

/** A state in a word; the stylesheet puts a sign beside its colour. */
export const badge = (state: State, text: string): Html =>
  `<span class="badge ${state}">${escaped(text)}</span>`

/** A paragraph that must not be missed. */
export const notice = (state: State, content: Html): Html =>
  `<div class="notice ${state}"><div>${content}</div></div>`

/** A part within something that unfolds: no landmark, because there are several of one name. */
export const part = (title: string, content: Html): Html =>
  `<div class="panel"><h3>${escaped(title)}</h3>${content}</div>`

/** A part of the page with a heading; `id` is its address, of letters and hyphens. */
export const section = (id: string, title: string, content: Html): Html =>
  `<section class="panel" aria-labelledby="${id}"><h2 id="${id}">${escaped(title)}</h2>${content}</section>`
