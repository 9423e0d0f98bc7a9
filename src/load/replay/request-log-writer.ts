// The thread that writes the log of each request: takes blocks of rows from the senders, makes lines of them, and gives a block
// back when the file has taken its lines.

import { EventEmitter, on } from 'node:events'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '../../common/errors.ts'
import { writeText } from '../traffic/write-traffic.ts'
import { type FromSender, type Logged, type LogTask, type RowBlock, rowFields } from './request-log.ts'
import type { RequestForm } from './schedule.ts'

const { path, schedule, warmUpMs, ports } = workerData as LogTask
const blocks = new EventEmitter()
// Before the first of them comes: the file is opened later.
const arriving = on(blocks, 'block')
for (const port of ports) port.on('message', (message: FromSender) => blocks.emit('block', message, port))
let lost = 0

async function* text(): AsyncGenerator<string> {
  let senders = ports.length
  for await (const [message, port] of arriving as AsyncIterable<[FromSender, MessagePort]>) {
    if ('rows' in message) {
      yield linesOf(message)
      port.postMessage(message.rows, [message.rows.buffer as ArrayBuffer])
      continue
    }
    lost += message.lost
    senders -= 1
    if (senders === 0) return
  }
}

const linesOf = ({ rows, count, names }: RowBlock): string => {
  let lines = ''
  for (let at = 0; at < count * rowFields.length; at += rowFields.length) {
    const [request, due, sent] = [rows[at], rows[at + 1], rows[at + 2]] as [number, number, number]
    const [end, status, name] = [rows[at + 3], rows[at + 4], rows[at + 5]] as [number, number, number]
    const became = Number.isNaN(sent)
      ? '"dropped":true'
      : Number.isNaN(status)
        ? `"failed":"${names[name]}"`
        : `"status":${status},"outcome":"${names[name]}"`
    const sentText = Number.isNaN(sent) ? '' : `"sent":${rounded(sent)},`
    const warmUp = due < warmUpMs ? ',"warmUp":true' : ''
    const key = schedule.key[request] ?? 0
    const keyText = key === 0 ? '' : `,"key":${JSON.stringify(schedule.keys[key - 1])}`
    lines += `{"due":${rounded(due)},${sentText}"end":${rounded(end)},${became}${warmUp},${formText(schedule.form[request] as number)}${keyText}}\n`
  }
  return lines
}

/** To the microsecond. */
const rounded = (ms: number): number => Math.round(ms * 1000) / 1000

const formTexts: string[] = []
const formText = (number: number): string => {
  const { method, path: sentPath } = schedule.forms[number] as RequestForm
  formTexts[number] ??= `"method":${JSON.stringify(method)},"path":${JSON.stringify(sentPath)}`
  return formTexts[number]
}

const write = async (): Promise<Logged> => {
  try {
    await writeText(path, text(), { force: true })
    return { lost, fault: undefined }
  } catch (error) {
    return { lost, fault: messageOf(error) }
  } finally {
    for (const port of ports) port.close()
  }
}
parentPort?.postMessage('ready')
parentPort?.postMessage(await write())
