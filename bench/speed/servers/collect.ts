// Loaded before a measured server: collects all garbage at SIGWINCH, so that its resident memory is that of what is in use, and
// says so with a line on standard output.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

// The gateway uses the signals that are meant for programs.
process.on('SIGWINCH', () => {
  // Weak references and finalizers need more than one.
  for (let i = 0; i < 3; i++) setTimeout(collect, i * 50)
  setTimeout(() => process.stdout.write('{"msg":"collected"}\n'), 200)
})
