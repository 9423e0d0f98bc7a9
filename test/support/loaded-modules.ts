// Preloaded into a process (`--import`): appends the address of every module that is loaded to the file that the variable
// LOADED_MODULES names.

import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

const file = process.env.LOADED_MODULES ?? ''

registerHooks({
  load: (url, context, next) => {
    appendFileSync(file, `${url}\n`)
    return next(url, context)
  },
})
