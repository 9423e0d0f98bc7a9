// Tables on the terminal: one line for each row, however long or odd its values.

import t from 'tap'
import { tableOf } from '../../src/cli/terminal.ts'

t.test('a cell has at most 500 characters and a sign of more, and its row stays one line', async t => {
  const [, short = '', long = ''] = tableOf(['name'], [['x'.repeat(500)], ['x'.repeat(501)]]).split('\n')
  t.equal(short, 'x'.repeat(500))
  t.equal(long, `${'x'.repeat(500)}…`)
  t.equal(tableOf(['name'], [['a\nb\u001b[31m']]).split('\n').length, 2)
})
