// Without it a full disk or a lost share could be reported as `Unknown system error`.

import { constants } from 'node:os'
import t from 'tap'
import { messageOf } from '../../src/common/errors.ts'

t.test('an error of the system that Node has no name for has one', async t => {
  // As Node makes it of a write beyond a quota of the disk.
  const write = (errno: number) => {
    const unknown = `Unknown system error -${errno}`
    return messageOf(new Error(`${unknown}: ${unknown}, write`))
  }
  t.equal(write(constants.errno.EDQUOT), 'EDQUOT: disk quota exceeded, write')
  t.equal(write(constants.errno.EIDRM), `EIDRM: system error ${constants.errno.EIDRM}, write`)
  t.match(write(9_999), /^Unknown system error -9999/)
})
