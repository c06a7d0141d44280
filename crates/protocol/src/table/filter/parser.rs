//! The grammar of filters: operator precedence over two explicit stacks, so that no text can overflow the thread's
//! stack.
//!
//! The OData library first parses and then binds, so there are two kinds of refusal. A syntax error is refused where it
//! occurs. Legal OData that is ill typed or not supported is refused only once the whole text has proved to be
//! grammatical.

use std::borrow::Cow;

use crate::ServiceError;
use crate::table::model::{EdmType, Value};

use super::lexer::{Lexer, Token, TokenKind};
use super::literal::Literal;
use super::tree::{CompareOp, Expr, FilterProperty};
use super::{Schema, refusal};

/// How many parentheses, negations and calls may be open at once; this is the limit of the OData v3 library. Each of
/// them may contain an `or` over an `and`, so the tree is at most about twice as deep. It is safe to walk or drop the
/// tree recursively.
pub const NESTING_DEPTH_MAX: usize = 800;

/// The functions of OData v3. The service supports none of them.
#[rustfmt::skip]
const KNOWN_FUNCTIONS: [&str; 22] = [
    "cast", "ceiling", "concat", "day", "endswith", "floor", "hour", "indexof", "isof", "length", "minute", "month",
    "replace", "round", "second", "startswith", "substring", "substringof", "tolower", "toupper", "trim", "year",
];

pub fn parse(text: &str, schema: Schema) -> Result<Expr, ServiceError> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let parser = Parser {
        text,
        schema,
        lexer,
        token,
        pending: Vec::new(),
        operands: Vec::new(),
        depth: 0,
        refused: None,
    };
    parser.run()
}

struct Parser<'t> {
    text: &'t str,
    schema: Schema,
    lexer: Lexer<'t>,
    token: Token<'t>,
    /// Operators and openings that wait for their right operand or closing parenthesis.
    pending: Vec<Pending<'t>>,
    operands: Vec<Operand>,
    /// How many of `pending` count as nesting.
    depth: usize,
    /// The refusal of the first construct that is legal but not supported.
    refused: Option<ServiceError>,
}

enum Pending<'t> {
    Group,
    Call(&'t str),
    Not,
    Negate,
    Binary(BinaryOp),
}

#[derive(Clone, Copy)]
enum BinaryOp {
    Or,
    And,
    Compare(CompareOp),
    /// `add`, `sub`.
    Sum,
    /// `mul`, `div`, `mod`.
    Product,
}

enum Operand {
    Condition(Expr),
    Property(FilterProperty),
    Literal(Literal),
}

impl BinaryOp {
    fn from_keyword(keyword: &str) -> Option<BinaryOp> {
        match keyword {
            "or" => Some(BinaryOp::Or),
            "and" => Some(BinaryOp::And),
            "add" | "sub" => Some(BinaryOp::Sum),
            "mul" | "div" | "mod" => Some(BinaryOp::Product),
            other => CompareOp::from_keyword(other).map(BinaryOp::Compare),
        }
    }

    /// Higher values bind tighter. `not` is between `and` and the comparisons, so `not a eq b` means `not (a eq b)`.
    /// OData's grammar would bind it to `a` alone, which no client can want.
    fn precedence(self) -> u8 {
        match self {
            BinaryOp::Or => 1,
            BinaryOp::And => 2,
            BinaryOp::Compare(_) => 4,
            BinaryOp::Sum => 5,
            BinaryOp::Product => 6,
        }
    }
}

impl Pending<'_> {
    fn precedence(&self) -> u8 {
        match self {
            Pending::Group | Pending::Call(_) => 0,
            Pending::Binary(op) => op.precedence(),
            Pending::Not => 3,
            Pending::Negate => 7,
        }
    }
}

impl Operand {
    fn type_name(&self) -> &'static str {
        match self {
            Operand::Condition(_) => EdmType::Boolean.name(),
            Operand::Property(property) => property.declared_type().map_or("<null>", EdmType::name),
            Operand::Literal(literal) => literal.type_name(),
        }
    }

    /// The operand as a condition; returns the operand itself if it is not one.
    fn into_condition(self) -> Result<Expr, Operand> {
        match self {
            Operand::Condition(expr) => Ok(expr),
            // Keys and Timestamp have a declared type, and it is not Boolean.
            Operand::Property(property) if property.declared_type().is_none() => Ok(Expr::Flag(property)),
            Operand::Literal(Literal::Value(Value::Boolean(value))) => Ok(Expr::Constant(value)),
            other => Err(other),
        }
    }
}

impl<'t> Parser<'t> {
    fn run(mut self) -> Result<Expr, ServiceError> {
        loop {
            self.read_operand()?;
            if !self.read_operator()? {
                break;
            }
        }
        let root = self.pop_operand().into_condition();
        match self.refused {
            Some(refused) => Err(refused),
            None => root.map_err(|_| refusal::not_boolean()),
        }
    }

    fn advance(&mut self) -> Result<(), ServiceError> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    /// Reads prefixes and opening parentheses, up to and including one operand.
    fn read_operand(&mut self) -> Result<(), ServiceError> {
        loop {
            let token = self.token;
            match token.kind {
                TokenKind::Open => {
                    self.nest(Pending::Group)?;
                    self.advance()?;
                }
                TokenKind::Identifier if token.text == "not" => {
                    self.nest(Pending::Not)?;
                    self.advance()?;
                }
                TokenKind::Minus => {
                    self.advance()?;
                    if self.token.kind.is_numeric() {
                        return self.read_negative_number(token.start);
                    }
                    self.nest(Pending::Negate)?;
                }
                TokenKind::Identifier if self.lexer.opens_at_once() => {
                    self.advance()?;
                    self.advance()?;
                    if self.token.kind == TokenKind::Close {
                        self.advance()?;
                        self.refuse_call(token.text);
                        return Ok(());
                    }
                    self.nest(Pending::Call(token.text))?;
                }
                TokenKind::Identifier => {
                    self.advance()?;
                    self.operands.push(Operand::Property(FilterProperty::named(token.text, self.schema)));
                    return Ok(());
                }
                _ => {
                    let Some(literal) = Literal::from_token(token, self.text) else {
                        return Err(refusal::expression_expected(self.text, token.start));
                    };
                    self.operands.push(Operand::Literal(literal?));
                    return self.advance();
                }
            }
        }
    }

    /// A minus that is separated from its number still belongs to it.
    fn read_negative_number(&mut self, start: usize) -> Result<(), ServiceError> {
        let text = format!("-{}", self.token.text);
        let negative = Token { kind: self.token.kind, text: &text, start };
        if let Some(literal) = Literal::from_token(negative, self.text) {
            self.operands.push(Operand::Literal(literal?));
        }
        self.advance()
    }

    /// Reads closing parentheses, up to and including one operator or comma; false at the end of the text.
    fn read_operator(&mut self) -> Result<bool, ServiceError> {
        loop {
            let token = self.token;
            match token.kind {
                TokenKind::Close => {
                    self.reduce_down_to(1);
                    match self.pending.pop() {
                        None => return Err(refusal::syntax(self.text, token.end())),
                        Some(Pending::Call(name)) => {
                            self.pop_operand();
                            self.refuse_call(name);
                        }
                        Some(_) => {}
                    }
                    self.depth -= 1;
                    self.advance()?;
                    continue;
                }
                TokenKind::Comma => {
                    self.reduce_down_to(1);
                    if let Some(Pending::Call(_)) = self.pending.last() {
                        self.pop_operand();
                        self.advance()?;
                        return Ok(true);
                    }
                }
                // Navigation, `any` or `all`, but the service has nothing to navigate to.
                TokenKind::Slash => return Err(refusal::not_implemented()),
                TokenKind::Identifier => {
                    if let Some(op) = BinaryOp::from_keyword(token.text) {
                        self.reduce_down_to(op.precedence());
                        self.pending.push(Pending::Binary(op));
                        self.advance()?;
                        return Ok(true);
                    }
                }
                _ => {}
            }
            self.reduce_down_to(1);
            return match self.pending.last() {
                Some(Pending::Call(_)) => Err(refusal::close_or_comma_expected(self.text, token.start)),
                Some(_) => Err(refusal::close_or_operator_expected(self.text, token.start)),
                None if token.kind == TokenKind::End => Ok(false),
                None => Err(refusal::syntax(self.text, token.end())),
            };
        }
    }

    fn nest(&mut self, pending: Pending<'t>) -> Result<(), ServiceError> {
        self.depth += 1;
        if self.depth > NESTING_DEPTH_MAX {
            return Err(refusal::too_deep());
        }
        self.pending.push(pending);
        Ok(())
    }

    /// No function is supported. OData's functions and unknown ones are refused differently.
    fn refuse_call(&mut self, name: &str) {
        let is_known = KNOWN_FUNCTIONS.contains(&name);
        self.refuse(if is_known { refusal::not_implemented() } else { refusal::unknown_function(name) });
    }

    /// Records why the filter is refused, and pushes a placeholder for the value of the refused construct.
    fn refuse(&mut self, refused: ServiceError) {
        self.refused.get_or_insert(refused);
        self.operands.push(Operand::Condition(Expr::Constant(false)));
    }

    fn pop_operand(&mut self) -> Operand {
        self.operands.pop().expect("an operator is read only after its operand")
    }

    /// Applies the pending operators that bind at least this tightly. All binary operators associate to the left.
    fn reduce_down_to(&mut self, precedence: u8) {
        while let Some(pending) = self.pending.pop_if(|pending| pending.precedence() >= precedence) {
            let right = self.pop_operand();
            match pending {
                Pending::Not => {
                    self.depth -= 1;
                    self.reduce_not(right);
                }
                Pending::Binary(op) => {
                    let left = self.pop_operand();
                    self.reduce_binary(left, op, right);
                }
                // A minus in front of anything but a number is arithmetic.
                Pending::Negate => {
                    self.depth -= 1;
                    self.refuse(refusal::not_implemented());
                }
                Pending::Group | Pending::Call(_) => {
                    unreachable!("parentheses bind less tightly than any operator")
                }
            }
        }
    }

    fn reduce_not(&mut self, operand: Operand) {
        match operand.into_condition() {
            Ok(condition) => self.operands.push(Operand::Condition(Expr::negation(condition))),
            Err(Operand::Literal(Literal::Null)) => self.refuse(refusal::null()),
            Err(other) => self.refuse(refusal::incompatible_operand(other.type_name(), "Not")),
        }
    }

    fn reduce_binary(&mut self, left: Operand, op: BinaryOp, right: Operand) {
        let has_null = [&left, &right].iter().any(|side| matches!(side, Operand::Literal(Literal::Null)));
        match op {
            _ if has_null => self.refuse(refusal::null()),
            BinaryOp::And => self.reduce_logic(left, "And", Expr::and, right),
            BinaryOp::Or => self.reduce_logic(left, "Or", Expr::or, right),
            BinaryOp::Compare(op) => self.reduce_comparison(left, op, right),
            BinaryOp::Sum | BinaryOp::Product => self.refuse(refusal::not_implemented()),
        }
    }

    fn reduce_logic(&mut self, left: Operand, kind: &str, join: fn(Expr, Expr) -> Expr, right: Operand) {
        let (left_type, right_type) = (left.type_name(), right.type_name());
        match (left.into_condition(), right.into_condition()) {
            (Ok(left), Ok(right)) => self.operands.push(Operand::Condition(join(left, right))),
            _ => self.refuse(refusal::incompatible_operands(left_type, right_type, kind)),
        }
    }

    fn reduce_comparison(&mut self, left: Operand, op: CompareOp, right: Operand) {
        let (left_type, right_type) = (left.type_name(), right.type_name());
        let (property, op_from_property, literal) = match (left, right) {
            (Operand::Property(property), Operand::Literal(literal)) => (property, op, literal),
            (Operand::Literal(literal), Operand::Property(property)) => (property, op.flipped(), literal),
            _ => return self.refuse(refusal::not_implemented()),
        };
        if property.declared_type().is_some() && left_type != right_type {
            return self.refuse(refusal::incompatible_operands(left_type, right_type, op.kind()));
        }
        self.operands.push(Operand::Condition(comparison(property, op_from_property, literal)));
    }
}

fn comparison(property: FilterProperty, op: CompareOp, literal: Literal) -> Expr {
    let literal = match literal {
        Literal::Value(Value::String(name)) if property == FilterProperty::TableName => {
            Value::String(Cow::Owned(name.to_ascii_lowercase()))
        }
        Literal::Value(value) => value,
        // No stored value has the literal's type, so every stored value is less than the literal. `ne NaN` holds for
        // every value, so it means "the property exists".
        _ => match op {
            CompareOp::Ne | CompareOp::Lt | CompareOp::Le => {
                return Expr::Compare { property, op: CompareOp::Ne, literal: Value::Double(f64::NAN) };
            }
            CompareOp::Eq | CompareOp::Gt | CompareOp::Ge => return Expr::Constant(false),
        },
    };
    Expr::Compare { property, op, literal }
}
