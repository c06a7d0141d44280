//! Filters: conditions on an entity, put together in Rust and sent as `$filter`.
//!
//! Owns: the tree of a filter, its text, and filters that are written as text. Promises: the text parses, by the parser
//! that the server uses, to the same tree; arguments never become syntax. However a filter was built, cloning, writing
//! and dropping it take no more stack than a leaf does. Leaves to others: the comparisons (`column`) and the literals.

use std::fmt::{self, Write};
use std::marker::PhantomData;
use std::ops::{BitAnd, BitOr, Not};

use protocol::table::filter::{CompareOp, Expr, FilterProperty, NESTING_DEPTH_MAX, Schema, parse};

use crate::literal::{Fit, Literal, LiteralText, ToLiteral};
use crate::plan::plan_of;
use crate::{Plan, Value};

/// A condition on entities of type `E`.
///
/// Comparisons come from the columns of `E`; `&`, `|` and `!` combine them. A column of another entity does not fit, so
/// a filter cannot name a property that `E` does not have.
///
/// ```
/// use lazulite_client::{DynamicEntity, Filter};
///
/// let mut filter = Filter::none();
/// for id in ["0001", "0007"] {
///     filter = filter | DynamicEntity::row_key().eq(id);
/// }
/// let filter = DynamicEntity::partition_key().eq("Sales") & !filter;
/// assert_eq!(filter.to_string(), "PartitionKey eq 'Sales' and not (RowKey eq '0001' or RowKey eq '0007')");
/// ```
pub struct Filter<E> {
    /// In postfix order: every node comes after its operands. A flat list needs no stack, however deep the tree is.
    nodes: Vec<Node>,
    of: PhantomData<fn() -> E>,
}

#[derive(Clone, PartialEq, Debug)]
enum Node {
    Constant(bool),
    Flag(FilterProperty),
    Compare {
        property: FilterProperty,
        op: CompareOp,
        literal: Value<'static>,
    },
    Not,
    /// Joins this many operands, two or more. None of them has the same word.
    List(Word, usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    And,
    Or,
}

impl<E> Filter<E> {
    fn new(nodes: Vec<Node>) -> Filter<E> {
        Filter { nodes, of: PhantomData }
    }

    /// Every entity: the filter to begin with when conditions are added by `&` in a loop.
    pub fn all() -> Filter<E> {
        Filter::new(vec![Node::Constant(true)])
    }

    /// No entity: the filter to begin with when alternatives are added by `|` in a loop.
    pub fn none() -> Filter<E> {
        Filter::new(vec![Node::Constant(false)])
    }

    pub(crate) fn compare(property: FilterProperty, op: CompareOp, literal: Value<'static>) -> Filter<E> {
        Filter::new(vec![Node::Compare { property, op, literal }])
    }

    /// A filter that is written as text, in the service's language. It is parsed, so a mistake is found here and not by
    /// the service. Never put values into the text; [`filter!`](crate::filter!) does that safely.
    ///
    /// ```
    /// use lazulite_client::{DynamicEntity, Filter};
    ///
    /// let filter = Filter::<DynamicEntity>::raw("Age gt 30 and not (Name eq 'O''Neill')")?;
    /// assert_eq!(filter.to_string(), "Age gt 30 and not (Name eq 'O''Neill')");
    /// assert!(Filter::<DynamicEntity>::raw("Age gt").is_err());
    /// # Ok::<(), lazulite_client::FilterError>(())
    /// ```
    pub fn raw(text: &str) -> Result<Filter<E>, FilterError> {
        match parse(text, Schema::Entities) {
            Ok(Some(filter)) => Ok(Filter::from_tree(filter.root)),
            Ok(None) => Ok(Filter::all()),
            Err(refusal) => Err(FilterError::new(refusal.message().to_string())),
        }
    }

    /// The text with each `{}` replaced by the literal of an argument. For [`filter!`](crate::filter!).
    #[doc(hidden)]
    pub fn with_arguments(text: &str, arguments: &[Literal<'_>]) -> Result<Filter<E>, FilterError> {
        Filter::raw(&fill(text, arguments)?)
    }

    /// What the service has to read for this filter.
    pub fn plan(&self) -> Plan {
        // The service refuses deeper filters, so that there is nothing to plan.
        if self.depth() > 2 * NESTING_DEPTH_MAX { Plan::TableScan } else { plan_of(Some(&self.to_tree())) }
    }

    /// Whether this is [`Filter::all`], which needs no `$filter` at all.
    pub fn is_all(&self) -> bool {
        self.nodes == [Node::Constant(true)]
    }

    /// The same condition on another type that reads the same table, such as a smaller struct for a projection. That
    /// the table has these properties is the caller's promise.
    pub fn cast<F>(self) -> Filter<F> {
        Filter::new(self.nodes)
    }

    fn join(mut self, word: Word, mut other: Filter<E>) -> Filter<E> {
        // `true and x` is `x`, and `true or x` is `true`; the other way round for `false`.
        let neutral = [Node::Constant(word == Word::And)];
        let absorbing = [Node::Constant(word == Word::Or)];
        if self.nodes == neutral || other.nodes == absorbing {
            return other;
        }
        if other.nodes == neutral || self.nodes == absorbing {
            return self;
        }
        let count = take_count(&mut self.nodes, word) + take_count(&mut other.nodes, word);
        self.nodes.append(&mut other.nodes);
        self.nodes.push(Node::List(word, count));
        self
    }

    fn from_tree(root: Expr) -> Filter<E> {
        enum Step {
            /// Write this operand, of a list with this word or of something else.
            Operand(Expr, Option<Word>),
            Not,
            /// The operands of the innermost open list are all written.
            EndOfList(Word),
        }
        let (mut nodes, mut counts) = (Vec::new(), Vec::new());
        let mut steps = vec![Step::Operand(root, None)];
        while let Some(step) = steps.pop() {
            let (word, terms, outer) = match step {
                Step::Not => {
                    nodes.push(Node::Not);
                    continue;
                }
                Step::EndOfList(word) => {
                    nodes.push(Node::List(word, counts.pop().expect("a list is open until it ends")));
                    continue;
                }
                Step::Operand(Expr::And(terms), outer) => (Word::And, terms, outer),
                Step::Operand(Expr::Or(terms), outer) => (Word::Or, terms, outer),
                Step::Operand(Expr::Not(operand), _) => {
                    steps.extend([Step::Not, Step::Operand(*operand, None)]);
                    continue;
                }
                Step::Operand(Expr::Constant(value), _) => {
                    nodes.push(Node::Constant(value));
                    continue;
                }
                Step::Operand(Expr::Flag(property), _) => {
                    nodes.push(Node::Flag(property));
                    continue;
                }
                Step::Operand(Expr::Compare { property, op, literal }, _) => {
                    nodes.push(Node::Compare { property, op, literal });
                    continue;
                }
            };
            // A list in a list with the same word is part of it.
            match counts.last_mut() {
                Some(count) if outer == Some(word) => *count += terms.len() - 1,
                _ => {
                    counts.push(terms.len());
                    steps.push(Step::EndOfList(word));
                }
            }
            steps.extend(terms.into_iter().rev().map(|term| Step::Operand(term, Some(word))));
        }
        Filter::new(nodes)
    }

    fn to_tree(&self) -> Expr {
        let mut operands: Vec<Expr> = Vec::new();
        for node in &self.nodes {
            let expr = match node {
                Node::Constant(value) => Expr::Constant(*value),
                Node::Flag(property) => Expr::Flag(property.clone()),
                Node::Compare { property, op, literal } => {
                    Expr::Compare { property: property.clone(), op: *op, literal: literal.clone() }
                }
                Node::Not => {
                    Expr::Not(Box::new(operands.pop().expect("an operand comes before its operator")))
                }
                Node::List(word, count) => {
                    let terms = operands.split_off(operands.len() - count);
                    match word {
                        Word::And => Expr::And(terms),
                        Word::Or => Expr::Or(terms),
                    }
                }
            };
            operands.push(expr);
        }
        operands.pop().expect("a filter has a root")
    }

    /// How many nodes are above the deepest leaf.
    fn depth(&self) -> usize {
        let mut depths: Vec<usize> = Vec::new();
        for node in &self.nodes {
            let depth = match node {
                Node::Constant(_) | Node::Flag(_) | Node::Compare { .. } => 0,
                Node::Not => 1 + depths.pop().unwrap_or(0),
                Node::List(_, count) => 1 + depths.drain(depths.len() - count..).max().unwrap_or(0),
            };
            depths.push(depth);
        }
        depths.pop().unwrap_or(0)
    }
}

/// If the last node is a list with this word, removes it and returns how many operands it leaves behind; otherwise the
/// last node is one operand itself.
fn take_count(nodes: &mut Vec<Node>, word: Word) -> usize {
    match nodes.last() {
        Some(Node::List(found, count)) if *found == word => {
            let count = *count;
            nodes.pop();
            count
        }
        _ => 1,
    }
}

impl<E> BitAnd for Filter<E> {
    type Output = Filter<E>;

    fn bitand(self, other: Filter<E>) -> Filter<E> {
        self.join(Word::And, other)
    }
}

impl<E> BitOr for Filter<E> {
    type Output = Filter<E>;

    fn bitor(self, other: Filter<E>) -> Filter<E> {
        self.join(Word::Or, other)
    }
}

/// True where the condition is false, and so also for entities that lack its properties.
impl<E> Not for Filter<E> {
    type Output = Filter<E>;

    fn not(mut self) -> Filter<E> {
        match self.nodes.last_mut() {
            Some(Node::Not) => drop(self.nodes.pop()),
            Some(Node::Constant(value)) => *value = !*value,
            _ => self.nodes.push(Node::Not),
        }
        self
    }
}

/// The text of `$filter`, not yet percent-encoded.
impl<E> fmt::Display for Filter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // How many nodes the subtree of each node has, so that operands can be found from the root down.
        let mut sizes: Vec<usize> = Vec::with_capacity(self.nodes.len());
        let mut roots: Vec<usize> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let operand_count = match node {
                Node::Constant(_) | Node::Flag(_) | Node::Compare { .. } => 0,
                Node::Not => 1,
                Node::List(_, count) => *count,
            };
            let size: usize = roots.drain(roots.len() - operand_count..).map(|root| sizes[root]).sum();
            sizes.push(1 + size);
            roots.push(index);
        }

        /// What is still to be written; the last comes first.
        enum Step {
            Text(&'static str),
            Node { index: usize, is_operand: bool },
        }
        let mut steps = vec![Step::Node { index: self.nodes.len() - 1, is_operand: false }];
        while let Some(step) = steps.pop() {
            let (index, is_operand) = match step {
                Step::Text(text) => {
                    f.write_str(text)?;
                    continue;
                }
                Step::Node { index, is_operand } => (index, is_operand),
            };
            match &self.nodes[index] {
                Node::Constant(value) => write!(f, "{value}")?,
                Node::Flag(property) => f.write_str(property_name(property))?,
                Node::Compare { property, op, literal } => {
                    write!(f, "{} {} {}", property_name(property), op_name(*op), LiteralText(literal))?;
                }
                Node::Not => {
                    f.write_str("not (")?;
                    steps.push(Step::Text(")"));
                    steps.push(Step::Node { index: index - 1, is_operand: false });
                }
                Node::List(word, count) => {
                    if is_operand {
                        f.write_char('(')?;
                        steps.push(Step::Text(")"));
                    }
                    let mut operand = index - 1;
                    for left in (0..*count).rev() {
                        steps.push(Step::Node { index: operand, is_operand: true });
                        if left > 0 {
                            steps.push(Step::Text(match word {
                                Word::And => " and ",
                                Word::Or => " or ",
                            }));
                            operand -= sizes[operand];
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn property_name(property: &FilterProperty) -> &str {
    match property {
        FilterProperty::PartitionKey => "PartitionKey",
        FilterProperty::RowKey => "RowKey",
        FilterProperty::Timestamp => "Timestamp",
        FilterProperty::TableName => "TableName",
        FilterProperty::Custom(name) => name,
    }
}

fn op_name(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => "eq",
        CompareOp::Ne => "ne",
        CompareOp::Gt => "gt",
        CompareOp::Ge => "ge",
        CompareOp::Lt => "lt",
        CompareOp::Le => "le",
    }
}

impl<E> Clone for Filter<E> {
    fn clone(&self) -> Self {
        Filter::new(self.nodes.clone())
    }
}

impl<E> PartialEq for Filter<E> {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

impl<E> fmt::Debug for Filter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filter({self})")
    }
}

/// A filter that the service would refuse.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterError {
    message: String,
}

impl FilterError {
    pub(crate) fn new(message: String) -> FilterError {
        FilterError { message }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FilterError {}

/// A filter from text and values: `filter!("Age gt {} and Name eq {}", age, name)`. Each `{}` stands for a whole
/// literal and is replaced by an argument with its type's quotes and suffixes, so that no argument can change the
/// filter. The number of arguments is checked by the compiler, the text when it runs. `{{` and `}}` stand for braces.
///
/// ```
/// use lazulite_client::{DynamicEntity, Filter, filter};
///
/// let (age, name) = (30, "O'Neill");
/// let filter: Filter<DynamicEntity> = filter!("Age gt {} and Name eq {}", age, name)?;
/// assert_eq!(filter.to_string(), "Age gt 30 and Name eq 'O''Neill'");
/// # Ok::<(), lazulite_client::FilterError>(())
/// ```
///
/// ```compile_fail
/// # use lazulite_client::{DynamicEntity, Filter, filter};
/// let filter: Result<Filter<DynamicEntity>, _> = filter!("Age gt {} and Name eq {}", 30);
/// ```
#[macro_export]
macro_rules! filter {
    ($text:literal $(, $argument:expr)* $(,)?) => {{
        const _: () = {
            let arguments: &[&str] = &[$(stringify!($argument)),*];
            $crate::__private::check_placeholders($text, arguments.len())
        };
        $crate::Filter::with_arguments($text, &[$($crate::__private::literal(&$argument)),*])
    }};
}

/// Counts `{}` in the text while the program is compiled.
#[doc(hidden)]
pub const fn check_placeholders(text: &str, argument_count: usize) {
    let bytes = text.as_bytes();
    let (mut at, mut count, mut is_quoted) = (0, 0, false);
    while at < bytes.len() {
        let next = if at + 1 < bytes.len() { bytes[at + 1] } else { 0 };
        match (bytes[at], next) {
            (b'\'', _) => is_quoted = !is_quoted,
            (b'{', b'{') | (b'}', b'}') => at += 1,
            (b'{', b'}') => {
                assert!(!is_quoted, "an argument brings its own quotes: write {{}} without quotes around it");
                count += 1;
                at += 1;
            }
            (b'{' | b'}', _) => {
                panic!("write {{}} for an argument, and double a brace that is part of the text")
            }
            _ => {}
        }
        at += 1;
    }
    assert!(count == argument_count, "the filter has another number of {{}} than there are arguments");
}

/// The argument of a `{}`.
#[doc(hidden)]
pub fn literal(value: &(impl ToLiteral + ?Sized)) -> Literal<'_> {
    value.to_literal()
}

/// Replaces each `{}`. Blanks around a literal keep it a token of its own. Inside of quotes there is no argument: the
/// literal's own quotes would end the text there, and the rest of the argument would be read as part of the filter.
fn fill(text: &str, arguments: &[Literal<'_>]) -> Result<String, FilterError> {
    let refused = |message: &str| Err(FilterError::new(message.to_owned()));
    let mut arguments = arguments.iter();
    let mut filled = String::with_capacity(text.len() + 16 * arguments.len());
    let (mut rest, mut is_quoted) = (text, false);
    while let Some(mark) = rest.find(['{', '}', '\'']) {
        let (before, after) = rest.split_at(mark);
        filled.push_str(before);
        let len = match after.get(..2) {
            _ if after.starts_with('\'') => {
                is_quoted = !is_quoted;
                filled.push('\'');
                1
            }
            Some("{{") => {
                filled.push('{');
                2
            }
            Some("}}") => {
                filled.push('}');
                2
            }
            Some("{}") if is_quoted => return refused("an argument of a filter stands inside of quotes"),
            Some("{}") => {
                let Some(literal) = arguments.next() else {
                    return refused("an argument of the filter is missing");
                };
                if literal.fit != Fit::Exact {
                    return refused("an argument of the filter is out of the range of its type");
                }
                write!(filled, " {} ", LiteralText(&literal.value))
                    .expect("writing to a string does not fail");
                2
            }
            _ => return refused("a brace in the filter stands alone"),
        };
        rest = &after[len..];
    }
    if arguments.next().is_some() {
        return refused("the filter has fewer {} than arguments");
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests;
