// A process that decodes entries of the shared tier, one per line of standard input, and prints for each the outcome and the
// peak memory of the process. The test that starts it limits its memory.

import { createInterface } from 'node:readline'
import { createCalendar } from '../../src/common/calendar.ts'
import { decodeTimeline } from '../../src/weather/timeline-bytes.ts'

const calendar = createCalendar('Asia/Dhaka')
const { key, lengths, now } = JSON.parse(process.argv[2] ?? '{}')

for await (const line of createInterface({ input: process.stdin })) {
  const found = decodeTimeline(Buffer.from(line, 'base64'), { key, lengths, now, calendar })
  const outcome = typeof found === 'string' ? found : 'read'
  const peakMiB = process.resourceUsage().maxRSS / 1024
  process.stdout.write(`${JSON.stringify({ outcome, peakMiB })}\n`)
}
