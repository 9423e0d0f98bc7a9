// The small changes that a mistake could make in a file: each is a range of its text and what replaces it. They are read from the
// syntax tree, so none is inside a comment, a type or an import.

import { type CallExpression, type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast'
import * as is from 'typescript/unstable/ast/is'

export type Change = {
  readonly operator: string
  readonly from: number
  readonly to: number
  readonly replacement: string
}

const replacedTokens = new Map<SyntaxKind, readonly [operator: string, replacement: string]>([
  [SyntaxKind.LessThanToken, ['comparison', '<=']],
  [SyntaxKind.LessThanEqualsToken, ['comparison', '<']],
  [SyntaxKind.GreaterThanToken, ['comparison', '>=']],
  [SyntaxKind.GreaterThanEqualsToken, ['comparison', '>']],
  [SyntaxKind.EqualsEqualsEqualsToken, ['comparison', '!==']],
  [SyntaxKind.ExclamationEqualsEqualsToken, ['comparison', '===']],
  [SyntaxKind.PlusToken, ['arithmetic', '-']],
  [SyntaxKind.MinusToken, ['arithmetic', '+']],
  [SyntaxKind.AsteriskToken, ['arithmetic', '/']],
  [SyntaxKind.SlashToken, ['arithmetic', '*']],
  [SyntaxKind.PlusEqualsToken, ['arithmetic', '-=']],
  [SyntaxKind.MinusEqualsToken, ['arithmetic', '+=']],
  [SyntaxKind.AmpersandAmpersandToken, ['logic', '||']],
  [SyntaxKind.BarBarToken, ['logic', '&&']],
])

/** All changes of a file, in the order of its text; some of them do not compile. */
export const changesOf = (file: SourceFile): Change[] => {
  const changes: Change[] = []
  const add: Add = (operator, node, replacement, last = node) => {
    changes.push({ operator, from: node.getStart(file), to: last.end, replacement })
  }
  const visit = (node: Node): void => {
    if (is.isTypeNode(node) || is.isImportDeclaration(node) || is.isExportDeclaration(node)) return
    if (is.isInterfaceDeclaration(node) || is.isTypeAliasDeclaration(node)) return
    changesOfNode(node, file, add)
    node.forEachChild(child => {
      visit(child)
    })
  }
  visit(file)
  return changes.sort((a, b) => a.from - b.from || a.to - b.to)
}

/** Replaces a node, or all from it to the end of another one. */
type Add = (operator: string, node: Node, replacement: string, last?: Node) => void

const changesOfNode = (node: Node, file: SourceFile, add: Add): void => {
  if (is.isBinaryExpression(node)) {
    const replaced = replacedTokens.get(node.operatorToken.kind)
    if (replaced) add(replaced[0], node.operatorToken, replaced[1])
  }
  if (is.isIfStatement(node) || is.isWhileStatement(node))
    add('negation', node.expression, `!(${node.expression.getText(file)})`)
  if (is.isConditionalExpression(node)) add('negation', node.condition, `!(${node.condition.getText(file)})`)
  if (is.isNumericLiteral(node)) {
    add('constant', node, `(${node.getText(file)} + 1)`)
    add('constant', node, `(${node.getText(file)} - 1)`)
  }
  if (node.kind === SyntaxKind.TrueKeyword) add('constant', node, 'false')
  if (node.kind === SyntaxKind.FalseKeyword) add('constant', node, 'true')
  if (is.isStringLiteral(node) && node.text !== '') add('empty', node, "''")
  if (is.isArrayLiteralExpression(node) && node.elements.length > 0) add('empty', node, '[]')
  if (is.isExpressionStatement(node)) add('dropped statement', node, ';')
  if (is.isBlock(node) && isBodyOfFunction(node) && node.statements.length > 0)
    add('early return', node, `{ return; ${node.getText(file).slice(1)}`)
  if (is.isCallExpression(node)) changesOfCall(node, file, add)
}

const changesOfCall = (call: CallExpression, file: SourceFile, add: Add): void => {
  const callee = call.expression.getText(file)
  if (callee === 'Math.min') add('arithmetic', call.expression, 'Math.max')
  if (callee === 'Math.max') add('arithmetic', call.expression, 'Math.min')
  if (/^Math\.(min|max)$/.test(callee)) return
  call.arguments.forEach((argument, i) => {
    const next = call.arguments[i + 1]
    if (!next || argument.getText(file) === next.getText(file)) return
    const between = file.text.slice(argument.end, next.getStart(file))
    add('swapped arguments', argument, `${next.getText(file)}${between}${argument.getText(file)}`, next)
  })
}

const isBodyOfFunction = ({ parent }: Node): boolean =>
  is.isArrowFunction(parent) ||
  is.isFunctionDeclaration(parent) ||
  is.isMethodDeclaration(parent) ||
  is.isFunctionExpression(parent) ||
  is.isConstructorDeclaration(parent)
