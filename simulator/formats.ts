// The response formats and how each is written. The simulator works on JSON values; the other formats turn a finished
// document into bytes, so that a fault in a document damages every format alike.

import { writeCsv } from './csv-document.ts'
import { type ForecastDocument, writeDocument } from './document.ts'

/** Content types by the kind of a body. */
export const contentTypes = {
  json: 'application/json; charset=utf-8',
  html: 'text/html',
  csv: 'text/csv; charset=utf-8',
  flatbuffers: 'application/octet-stream',
} as const

/** By name, how a document is written; the first is the default. */
export const formats = {
  json: async (document: ForecastDocument): Promise<string | Uint8Array> => writeDocument(document),
  csv: async (document: ForecastDocument): Promise<string | Uint8Array> => writeCsv(document),
  flatbuffers: async (document: ForecastDocument): Promise<string | Uint8Array> => {
    const { writeFlatBuffers } = await import('./flatbuffers-document.ts')
    return writeFlatBuffers(document)
  },
} as const

/** The name of a format. */
export type Format = keyof typeof formats
