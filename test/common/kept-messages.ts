// A process that keeps many errors whose messages were cut from long texts: `node kept-messages.ts <errors> <length>`.
// Prints the bytes that stay in use; run it with limited memory.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ProviderError } from '../../src/provider/errors.ts'

const [errors = 0, length = 0] = process.argv.slice(2).map(Number)
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const kept: ProviderError[] = []
for (let i = 0; i < errors; i++) {
  // As a body arrives: bytes that are decoded into one text.
  const text = Buffer.alloc(length, `unit ${i} `).toString()
  kept.push(new ProviderError('provider_garbled', `the unit is "${text}"`))
  collect()
}
const { heapUsed, external } = process.memoryUsage()
process.stdout.write(
  JSON.stringify({ errors: kept.length, bytes: heapUsed + external, longest: kept[0]?.message.length }),
)
