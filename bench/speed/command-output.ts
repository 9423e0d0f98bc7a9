// Runs a command to its end and returns what it printed.

import { execFile } from 'node:child_process'

/** @throws Error with what it wrote on standard error */
export const outputOf = (command: string, args: readonly string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    execFile(command, args, { maxBuffer: 1e8 }, (error, stdout, stderr) =>
      error ? reject(new Error(`${command}: ${stderr || stdout || error.message}`)) : resolve(stdout),
    )
  })
