// Sets the flags of V8's heap for a gateway that is loaded. They come now and not with the start of the process: compiled
// code is refused under other flags than it was compiled with, and Node ships that of its own modules compiled without.

import { flushCompileCache } from 'node:module'
import { setFlagsFromString } from 'node:v8'

/** Call it once, before the first requests: they teach V8 what lives long. */
export const setHeapFlags = (): void => {
  // What is written later would be refused at the next start, which reads it without these flags.
  flushCompileCache()
  // No judgement of what will live long from what lived through the first, cold burst.
  setFlagsFromString('--no-allocation-site-pretenuring')
  // Old objects are collected when they have grown by 60 % and not, as may happen, by 300.
  setFlagsFromString('--heap-growing-percent=60')
}
