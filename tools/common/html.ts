// Parts of HTML for the pages that tools write, beside those of the gateway's own pages: tables that scroll on a phone, large figures.

import { escaped, type Html } from 'abohawa/common/page/html.ts'

/** A name, path or command. */
export const code = (text: string): Html => `<code>${escaped(text)}</code>`

type Column = { readonly head: string; readonly isNumber?: boolean }

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

/** A part within something that unfolds: no landmark, because there are several of one name. */
export const part = (title: string, content: Html): Html =>
  `<div class="panel"><h3>${escaped(title)}</h3>${content}</div>`
