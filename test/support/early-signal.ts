// Preloaded into a process of the product: sends it the signals of EARLY_SIGNALS while it loads its code, right before the commands.

import { registerHooks } from 'node:module'

registerHooks({
  load: (url, context, next) => {
    if (url.endsWith('/src/cli/program.ts'))
      for (const signal of process.env.EARLY_SIGNALS?.split(' ') ?? []) process.kill(process.pid, signal)
    return next(url, context)
  },
})
