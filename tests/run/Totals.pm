# Totals.pm - prove's own report, and below it the line `N passed, N failed`.
package Totals;

use strict;
use warnings;
use TAP::Formatter::Console;
use TAP::Formatter::File;

# A terminal sees progress; a file or a pipe gets whole lines.
our @ISA = -t STDOUT ? 'TAP::Formatter::Console' : 'TAP::Formatter::File';

sub summary {
    my ($self, $aggregate, $interrupted) = @_;
    my $failed = $aggregate->failed;

    $self->SUPER::summary($aggregate, $interrupted);

    # A program that died, or broke its plan, is a failure also when all its lines are ok.
    for my $parser ($aggregate->parsers) {
        $failed++ if $parser->has_problems && !$parser->failed;
    }
    $failed++ if $interrupted || !$aggregate->total;
    printf "%d passed, %d failed\n", scalar $aggregate->passed, $failed;
}

1;
