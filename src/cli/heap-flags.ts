// Sets the flags of V8's heap for a gateway that is loaded. They come now and not with the start of the process: compiled
// code is refused under other flags than it was compiled with, and Node ships that of its own modules compiled without.

import { setFlagsFromString } from 'node:v8'

/** Call it once, when everything is loaded and before the first request. */
export const setHeapFlags = (): void => {
  // No judgement of what will live long from what lived through the first, cold burst.
  setFlagsFromString('--no-allocation-site-pretenuring')
  // Old objects are collected when they have grown by 60 % and not, as may happen, by 300.
  setFlagsFromString('--heap-growing-percent=60')
}
