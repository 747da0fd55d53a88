# Totals.pm - prove's own report, and below it the line `N passed, N failed`.
package Totals;

use strict;
use warnings;
use parent 'TAP::Formatter::Console';

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
